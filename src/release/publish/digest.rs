//! Digests: SHA-256 for public data, keyed (HMAC) for private data.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use hmac::Mac;
use sha2::{Digest, Sha256};

use crate::engine::Context;
use crate::engine::pseudonym::mac_of;
use crate::error::Result;

/// Returns the SHA-256 of bytes, in hexadecimal.
pub fn of_bytes(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Returns the SHA-256 of texts, each behind the number of its bytes, in hexadecimal.
pub(crate) fn of_texts(texts: [&str; 2]) -> String {
    let mut digest = Sha256::new();
    for text in texts {
        digest.update((text.len() as u64).to_le_bytes());
        digest.update(text);
    }
    hex(&digest.finalize())
}

/// Returns the SHA-256 of a file in hexadecimal, as `sha256sum` prints it.
///
/// # Errors
/// A data error when the file cannot be read.
pub fn of_file(path: &Path) -> Result<String> {
    let mut digest = Sha256::new();
    read(path, &mut |bytes| digest.update(bytes))?;
    Ok(hex(&digest.finalize()))
}

/// Returns the HMAC-SHA-256 of a file under a key. Without the key it does not reveal whether a
/// guessed file was the input.
///
/// # Errors
/// A data error when the file cannot be read.
pub fn keyed(path: &Path, key: &[u8]) -> Result<String> {
    let mut mac = mac_of(key)?;
    read(path, &mut |bytes| mac.update(bytes))?;
    Ok(hex(&mac.finalize().into_bytes()))
}

/// Returns the HMAC-SHA-256 of words under a key.
///
/// # Errors
/// An internal error for a key of an invalid length.
pub(crate) fn keyed_words(words: impl Iterator<Item = u128>, key: &[u8]) -> Result<[u8; 32]> {
    let mut mac = mac_of(key)?;
    words.for_each(|word| mac.update(&word.to_le_bytes()));
    Ok(mac.finalize().into_bytes().into())
}

fn read(path: &Path, update: &mut dyn FnMut(&[u8])) -> Result<()> {
    let place = format!("file {}", path.display());
    let mut file = File::open(path).context(&place)?;
    let mut buffer = vec![0u8; 1 << 20];
    loop {
        match file.read(&mut buffer).context(&place)? {
            0 => return Ok(()),
            n => update(&buffer[..n]),
        }
    }
}

/// A writer that computes the SHA-256 of its input and discards the bytes.
#[derive(Default)]
pub(crate) struct Sink(Sha256);

impl Sink {
    pub(crate) fn finish(self) -> String {
        hex(&self.0.finalize())
    }
}

impl std::io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the bytes that [`hex`] writes like this; `None` for any other text.
pub(crate) fn of_hex(text: &str) -> Option<Vec<u8>> {
    let pair = |at: usize| u8::from_str_radix(text.get(at..at + 2)?, 16).ok();
    let bytes: Vec<u8> = (0..text.len()).step_by(2).map(pair).collect::<Option<_>>()?;
    (hex(&bytes) == text).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_those_of_the_standards() {
        assert_eq!(of_bytes(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        std::fs::write(&path, "what do ya want for nothing?").unwrap();
        // RFC 4231, test case 2.
        let expected = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(keyed(&path, b"Jefe").unwrap(), expected);
    }
}
