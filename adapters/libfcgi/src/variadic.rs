//! Functions with `...`, which Rust can call but not define: they lay out their arguments as the C calling convention of
//! x86-64 wants it for `va_list` (System V ABI, section 3.5.7), and call their namesakes with a `va_list`.

use crate::printf::FCGX_VFPrintF;
use crate::stdio::{FCGI_vfprintf, FCGI_vprintf};

/// Defines `$name(named arguments, ...)`, which calls `$with_list(named arguments, va_list)`.
///
/// Below the return address are 8 bytes for alignment, 176 of saved registers, 24 of `va_list`. Registers are saved
/// where the list expects them; floating-point ones only if used (`al` is their number). `$named_bytes` is the number
/// of bytes of saved registers of named arguments, `$list` the next register.
macro_rules! variadic {
    ($(#[$doc:meta])* $name:ident, $with_list:ident, $named_bytes:literal, $list:literal) => {
        $(#[$doc])*
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            std::arch::naked_asm!(
                "sub rsp, 0xd8",
                "mov [rsp + 0x20], rdi",
                "mov [rsp + 0x28], rsi",
                "mov [rsp + 0x30], rdx",
                "mov [rsp + 0x38], rcx",
                "mov [rsp + 0x40], r8",
                "mov [rsp + 0x48], r9",
                "test al, al",
                "je 2f",
                "movaps [rsp + 0x50], xmm0",
                "movaps [rsp + 0x60], xmm1",
                "movaps [rsp + 0x70], xmm2",
                "movaps [rsp + 0x80], xmm3",
                "movaps [rsp + 0x90], xmm4",
                "movaps [rsp + 0xa0], xmm5",
                "movaps [rsp + 0xb0], xmm6",
                "movaps [rsp + 0xc0], xmm7",
                "2:",
                // gp_offset, fp_offset, overflow_arg_area, reg_save_area
                concat!("mov dword ptr [rsp], ", $named_bytes),
                "mov dword ptr [rsp + 0x4], 0x30",
                "lea rax, [rsp + 0xe0]",
                "mov [rsp + 0x8], rax",
                "lea rax, [rsp + 0x20]",
                "mov [rsp + 0x10], rax",
                concat!("mov ", $list, ", rsp"),
                "call {with_list}",
                "add rsp, 0xd8",
                "ret",
                with_list = sym $with_list,
            )
        }
    };
}

variadic!(
    /// `int FCGX_FPrintF(FCGX_Stream *stream, const char *format, ...)`
    FCGX_FPrintF, FCGX_VFPrintF, 16, "rdx"
);
variadic!(
    /// `int FCGI_fprintf(FCGI_FILE *fp, const char *format, ...)`
    FCGI_fprintf, FCGI_vfprintf, 16, "rdx"
);
variadic!(
    /// `int FCGI_printf(const char *format, ...)`
    FCGI_printf, FCGI_vprintf, 8, "rsi"
);
