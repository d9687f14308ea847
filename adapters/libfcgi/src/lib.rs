//! A drop-in for `libfcgi.so.0` (2.4.x): the same symbols and structures on top of `baton-responder`, so that
//! unmodified programs answer through shared memory or on the client's own socket where the server offers it.
//!
//! | module | part of the original |
//! |---|---|
//! | `abi` | the streams of `fcgiapp.h`, the files of `fcgi_stdio.h` |
//! | `stream`, `printf` | `FCGX_GetStr`, `FCGX_PutStr`, `FCGX_FPrintF`, ...: streams of any implementation |
//! | `request`, `exchange` | `FCGX_Accept_r`, `FCGX_Finish_r`, ...: requests and the implementation of their streams |
//! | `record_writer` | `FCGX_CreateWriter`: streams of records without a request |
//! | `stdio`, `stdio_file`, `variadic` | `FCGI_printf`, `_fcgi_sF`, ...: the stdio layer |
//! | `os`, `asynchronous`, `shutdown`, `errno` | `OS_Accept`, `OS_AsyncRead`, ...: sockets, callbacks, signals |
//!
//! What differs on purpose: records hold up to 64 KiB instead of 8; formats that the original does not know (`%lld`,
//! `%zu`) work; a request's exit status does not outlive it.

mod abi;
mod asynchronous;
mod errno;
mod exchange;
mod os;
mod printf;
mod record_writer;
mod request;
mod shutdown;
mod stdio;
mod stdio_file;
mod stream;
#[cfg(target_arch = "x86_64")]
mod variadic;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!("variadic functions need a few instructions for each architecture: see src/variadic.rs");
