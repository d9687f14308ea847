//! PEM files in memory, read section by section, so that errors name the line.

use baton_report::OperatorError;
use rustls::pki_types::pem::{Error, PemObject, SectionKind};
use zeroize::Zeroizing;

/// A file in memory. It may hold a private key, so its bytes are zeroed on drop.
pub struct PemFile {
    name: String,
    bytes: Zeroizing<Vec<u8>>,
}

/// A section of a file: what stands between `BEGIN` and `END`.
pub(crate) struct Section {
    pub(crate) kind: SectionKind,
    pub(crate) der: Zeroizing<Vec<u8>>,
    /// The line of its `BEGIN`, from 1.
    pub(crate) line: usize,
}

impl PemFile {
    /// A file by the name that errors give it: its path.
    pub fn new(name: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self { name: name.into(), bytes: Zeroizing::new(bytes) }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The contents.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// An error at a line of the file.
    pub(crate) fn trouble(&self, line: usize, what: impl std::fmt::Display) -> OperatorError {
        OperatorError::new(format!("{}:{line}: {what}", self.name))
    }

    /// An error of the file as a whole.
    pub(crate) fn whole(&self, what: impl std::fmt::Display) -> OperatorError {
        OperatorError::new(format!("{}: {what}", self.name))
    }

    /// The sections of the kinds that are wanted. Others are skipped: a file may hold the key beside the certificates,
    /// or parameters that tools have left there.
    ///
    /// # Errors
    /// The first damaged section.
    pub(crate) fn sections(&self, wanted: &[SectionKind]) -> Result<Vec<Section>, OperatorError> {
        let mut sections = Vec::new();
        for (line, text) in self.raw_sections() {
            match <(SectionKind, Vec<u8>)>::from_pem_slice(text) {
                Ok((kind, der)) if wanted.contains(&kind) => {
                    sections.push(Section { kind, der: Zeroizing::new(der), line });
                }
                Ok((_, der)) => drop(Zeroizing::new(der)),
                Err(Error::NoItemsFound) => {}
                Err(error) => {
                    let why = match error {
                        Error::MissingSectionEnd { .. } => "it has no line `-----END …`",
                        Error::Base64Decode(_) => "it is not base64",
                        _ => "its first line is not `-----BEGIN …-----`",
                    };
                    let trouble = self.trouble(line, format_args!("a damaged section: {why}"));
                    return Err(trouble.cause("the file was cut or edited").remedy("copy it again"));
                }
            }
        }
        Ok(sections)
    }

    /// The line of a private key that is protected by a password, if there is one.
    pub(crate) fn encrypted_key(&self) -> Option<usize> {
        let is_encrypted = |text: &[u8]| {
            [&b"-----BEGIN ENCRYPTED"[..], b"ENCRYPTED\n", b"ENCRYPTED\r"]
                .iter()
                .any(|mark| text.windows(mark.len()).any(|window| window == *mark))
        };
        self.raw_sections().find(|(_, text)| is_encrypted(text)).map(|(line, _)| line)
    }

    /// Each part of the file that begins with a line `-----BEGIN …`, up to the next, with the number of that line.
    fn raw_sections(&self) -> impl Iterator<Item = (usize, &[u8])> {
        let mut starts = Vec::new();
        let mut place = 0;
        for (index, line) in self.bytes.split_inclusive(|byte| *byte == b'\n').enumerate() {
            if line.starts_with(b"-----BEGIN ") {
                starts.push((index + 1, place));
            }
            place += line.len();
        }
        let ends: Vec<_> = starts.iter().skip(1).map(|(_, place)| *place).chain([self.bytes.len()]).collect();
        starts.into_iter().zip(ends).map(|((line, start), end)| (line, &self.bytes[start..end]))
    }
}

impl std::fmt::Debug for PemFile {
    /// Never shows the contents.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PemFile").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_know_their_lines() {
        let text = "what the tool said\n-----BEGIN DH PARAMETERS-----\nAAAA\n-----END DH PARAMETERS-----\n\
                    -----BEGIN CERTIFICATE-----\nAQID\n-----END CERTIFICATE-----\n\
                    -----BEGIN CERTIFICATE-----\nBAUG\n-----END CERTIFICATE-----";
        let file = PemFile::new("f.pem", text.into());
        let sections = file.sections(&[SectionKind::Certificate]).unwrap();
        let found: Vec<_> = sections.iter().map(|section| (section.line, section.der.to_vec())).collect();
        assert_eq!(found, [(5, vec![1, 2, 3]), (8, vec![4, 5, 6])]);
    }

    #[test]
    fn damage_is_told_with_its_line() {
        for damaged in ["A!==", "AQID\n-----BEGIN CERTIFICATE-----"] {
            let text = format!("\n-----BEGIN CERTIFICATE-----\n{damaged}\n");
            let error = PemFile::new("f.pem", text.into_bytes()).sections(&[SectionKind::Certificate]);
            let error = error.err().map(|trouble| trouble.to_string()).unwrap_or_default();
            assert!(error.starts_with("f.pem:2: a damaged section"), "{error}");
        }
    }

    #[test]
    fn nothing_shows_a_key() {
        let file = PemFile::new("k.pem", b"secret".to_vec());
        assert!(!format!("{file:?}").contains("secret") && !format!("{file:?}").contains("115"));
    }
}
