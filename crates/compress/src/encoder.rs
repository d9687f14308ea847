//! Bytes in, coded bytes out.

use std::fmt;
use std::io::{self, Write};

use baton_http::Coding;
use brotli::CompressorWriter;
use brotli::enc::BrotliEncoderParams;
use flate2::write::GzEncoder;
use zstd::zstd_safe::CParameter;

/// How much work the bytes are worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// They are coded once and sent often.
    Once,
    /// They are coded for one client, between other clients.
    Stream,
}

/// A body on its way into a coding.
///
/// It takes between a quarter of a megabyte (gzip) and two (Brotli), besides what was not [taken](Self::take).
///
/// Behind a pointer to code: if its fields had the encoders' types, each crate that drops one would get a copy of Brotli, which
/// completes its stream then.
pub struct Encoder(Box<dyn Coder + Send>);

/// What the encoders have in common, all of which write into memory.
trait Coder: Write {
    fn coded(&mut self) -> &mut Vec<u8>;
    fn finish(self: Box<Self>) -> io::Result<Vec<u8>>;
}

impl Coder for GzEncoder<Vec<u8>> {
    fn coded(&mut self) -> &mut Vec<u8> {
        self.get_mut()
    }

    fn finish(self: Box<Self>) -> io::Result<Vec<u8>> {
        Self::finish(*self)
    }
}

impl Coder for CompressorWriter<Vec<u8>> {
    fn coded(&mut self) -> &mut Vec<u8> {
        self.get_mut()
    }

    fn finish(self: Box<Self>) -> io::Result<Vec<u8>> {
        Ok(self.into_inner())
    }
}

impl Coder for zstd::stream::write::Encoder<'static, Vec<u8>> {
    fn coded(&mut self) -> &mut Vec<u8> {
        self.get_mut()
    }

    fn finish(self: Box<Self>) -> io::Result<Vec<u8>> {
        Self::finish(*self)
    }
}

impl Encoder {
    /// An encoder for this coding.
    ///
    /// # Errors
    /// The coding is [`Coding::Identity`], or there is no memory for the encoder.
    pub fn new(coding: Coding, effort: Effort) -> io::Result<Self> {
        let is_once = effort == Effort::Once;
        Ok(Self(match coding {
            Coding::Identity => return Err(io::ErrorKind::InvalidInput.into()),
            Coding::Gzip => {
                let level = flate2::Compression::new(if is_once { 6 } else { 4 });
                Box::new(GzEncoder::new(Vec::new(), level))
            }
            Coding::Brotli => {
                let params = BrotliEncoderParams {
                    quality: if is_once { 5 } else { 4 },
                    lgwin: BROTLI_WINDOW_BITS,
                    ..BrotliEncoderParams::default()
                };
                Box::new(CompressorWriter::with_params(Vec::new(), BUFFER_BYTES, &params))
            }
            Coding::Zstd => {
                let mut encoder = zstd::stream::write::Encoder::new(Vec::new(), if is_once { 9 } else { 3 })?;
                encoder.set_parameter(CParameter::WindowLog(ZSTD_WINDOW_BITS))?;
                Box::new(encoder)
            }
        }))
    }

    /// Codes these bytes. Some of them may stay in the encoder until [`flush`](Self::flush) or [`finish`](Self::finish).
    ///
    /// # Errors
    /// There is no memory for them. The body cannot be completed.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes)
    }

    /// Lets the client decode all that was written.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }

    /// The coded bytes that are there.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(self.0.coded())
    }

    /// Completes the body: the rest of the coded bytes.
    ///
    /// # Errors
    /// As [`write`](Self::write).
    pub fn finish(self) -> io::Result<Vec<u8>> {
        self.0.finish()
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Encoder")
    }
}

/// A whole body in a coding; `None`: it would not be shorter.
pub fn whole(coding: Coding, bytes: &[u8], effort: Effort) -> Option<Vec<u8>> {
    let mut encoder = Encoder::new(coding, effort).ok()?;
    encoder.write(bytes).ok()?;
    encoder.finish().ok().filter(|coded| coded.len() < bytes.len())
}

/// 256 KiB: what a page repeats is seldom further back, and the encoder's memory follows from it.
const BROTLI_WINDOW_BITS: i32 = 18;
const ZSTD_WINDOW_BITS: u32 = 18;

/// What brotli collects before it hands it on.
const BUFFER_BYTES: usize = 4096;
