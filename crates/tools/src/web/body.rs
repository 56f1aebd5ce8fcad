//! Reading a body within its limits.

use std::io::Write;

use flate2::write::{GzDecoder, ZlibDecoder};

/// Collects a body up to a number of bytes, decompressed. What comes after them is never held, so a small body that unpacks into an endless
/// one costs no more than any other.
pub(super) struct BoundedBody {
    decoder: Decoder,
}

enum Decoder {
    Plain(Bounded),
    Gzip(Box<GzDecoder<Bounded>>),
    Zlib(Box<ZlibDecoder<Bounded>>),
}

struct Bounded {
    bytes: Vec<u8>,
    most: usize,
    is_cut: bool,
}

impl Write for Bounded {
    fn write(&mut self, more: &[u8]) -> std::io::Result<usize> {
        let taken = more.len().min(self.most - self.bytes.len());
        self.bytes.extend_from_slice(&more[..taken]);
        self.is_cut |= taken < more.len();
        // A short count would end the decoder with an error. It is asked after each chunk whether to go on.
        Ok(more.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A body that was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReadBody {
    pub(super) bytes: Vec<u8>,
    /// Whether there was more than may be read.
    pub(super) is_cut: bool,
}

impl BoundedBody {
    /// `encoding` is the header `content-encoding`. Only gzip is asked for.
    pub(super) fn new(encoding: &str, most: usize) -> Result<Self, String> {
        let bounded = Bounded { bytes: Vec::new(), most, is_cut: false };
        let decoder = match encoding.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Decoder::Plain(bounded),
            "gzip" | "x-gzip" => Decoder::Gzip(Box::new(GzDecoder::new(bounded))),
            "deflate" => Decoder::Zlib(Box::new(ZlibDecoder::new(bounded))),
            other => return Err(format!("it is compressed as {other:?}, which was not asked for")),
        };
        Ok(Self { decoder })
    }

    /// Takes a chunk. False: enough was read.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<bool, String> {
        // In small parts, because one part can unpack into a thousand times its size.
        for part in chunk.chunks(4 << 10) {
            let written = match &mut self.decoder {
                Decoder::Plain(bounded) => bounded.write_all(part),
                Decoder::Gzip(decoder) => decoder.write_all(part),
                Decoder::Zlib(decoder) => decoder.write_all(part),
            };
            let is_cut = match &self.decoder {
                Decoder::Plain(bounded) => bounded.is_cut,
                Decoder::Gzip(decoder) => decoder.get_ref().is_cut,
                Decoder::Zlib(decoder) => decoder.get_ref().is_cut,
            };
            if is_cut {
                return Ok(false);
            }
            written.map_err(|error| format!("it can't be decompressed ({error})"))?;
        }
        Ok(true)
    }

    pub(super) fn finish(self) -> Result<ReadBody, String> {
        let broken = |error: std::io::Error| format!("it can't be decompressed ({error})");
        let mut bounded = match self.decoder {
            Decoder::Plain(bounded) => bounded,
            Decoder::Gzip(mut decoder) if decoder.get_ref().is_cut => std::mem::take(decoder.get_mut()),
            Decoder::Zlib(mut decoder) if decoder.get_ref().is_cut => std::mem::take(decoder.get_mut()),
            Decoder::Gzip(decoder) => decoder.finish().map_err(broken)?,
            Decoder::Zlib(decoder) => decoder.finish().map_err(broken)?,
        };
        Ok(ReadBody { bytes: std::mem::take(&mut bounded.bytes), is_cut: bounded.is_cut })
    }
}

impl Default for Bounded {
    /// What is left in a decoder that is dropped.
    fn default() -> Self {
        Self { bytes: Vec::new(), most: 0, is_cut: true }
    }
}
