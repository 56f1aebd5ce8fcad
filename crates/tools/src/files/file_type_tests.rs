use super::*;

#[test]
fn text_is_text_in_any_language_and_in_an_older_encoding() {
    assert_eq!(binary_kind("Grüße, 日本, \x1b[31mred\x1b[0m\r\n".as_bytes()), None);
    assert_eq!(binary_kind(b"Gr\xfc\xdfe aus K\xf6ln"), None);
    assert_eq!(binary_kind(b""), None);
}

#[test]
fn what_is_no_text_is_named() {
    assert_eq!(binary_kind(b"\x7fELF\x02\x01\x01\x00"), Some("a program or library (ELF)"));
    assert_eq!(binary_kind(b"\x1f\x8b\x08\x00"), Some("gzip"));
    assert_eq!(binary_kind(b"\xff\xfeh\x00i\x00"), Some("text in UTF-16"));
    assert_eq!(binary_kind(&[0x91, 0xe3, 0xfa, 0x01, b'a']), Some("of an unknown type"));
}

#[test]
fn pictures_are_known_by_their_first_bytes() {
    assert_eq!(image_media_type(b"\x89PNG\r\n\x1a\n..."), Some("image/png"));
    assert_eq!(image_media_type(b"RIFF1234WEBPVP8 "), Some("image/webp"));
    assert_eq!(image_media_type(b"RIFF1234WAVE"), None);
}
