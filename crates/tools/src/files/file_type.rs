//! The type of a file, by its first bytes.

/// Bytes of a file that decide about its type.
pub(super) const SNIFFED_BYTES: usize = 8 << 10;

/// A file with a larger share of non-text bytes is binary.
const MAX_NON_TEXT_PERCENT: usize = 30;

/// The media type of an image that models can read.
pub(super) fn image_media_type(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

/// The kind of a binary file; `None` for text. A file is binary if it has a zero byte, or if too much of it is neither
/// UTF-8 nor printable. Text in an older encoding, with a few invalid bytes, is still text.
pub(super) fn binary_kind(head: &[u8]) -> Option<&'static str> {
    if !head.contains(&0) && non_text_bytes(head) * 100 <= head.len() * MAX_NON_TEXT_PERCENT {
        return None;
    }
    Some(match head {
        [0x7f, b'E', b'L', b'F', ..] => "a program or library (ELF)",
        [0x1f, 0x8b, ..] => "gzip",
        [b'P', b'K', 3 | 5, 4 | 6, ..] => "zip",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => "zstd",
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "xz",
        [b'%', b'P', b'D', b'F', ..] => "PDF",
        [b'S', b'Q', b'L', b'i', b't', b'e', ..] => "an SQLite database",
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "text in UTF-16",
        [0, b'a', b's', b'm', ..] => "WebAssembly",
        _ => "of an unknown type",
    })
}

fn non_text_bytes(head: &[u8]) -> usize {
    let control =
        |byte: &u8| byte.is_ascii_control() && !matches!(byte, b'\t' | b'\n' | b'\r' | 0x08 | 0x0c | 0x1b);
    head.utf8_chunks()
        .map(|chunk| chunk.invalid().len() + chunk.valid().bytes().filter(control).count())
        .sum()
}

#[cfg(test)]
#[path = "file_type_tests.rs"]
mod tests;
