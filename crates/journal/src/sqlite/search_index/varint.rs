//! Numbers of variable length: seven bits in a byte, the lowest first.

pub(super) fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
}

/// Takes a number from the front. `None` at the end, or if the bytes are damaged.
pub(super) fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Maps small numbers of either sign to small ones: 0, -1, 1, -2 to 0, 1, 2, 3.
pub(super) fn fold_sign(number: i64) -> u64 {
    (number << 1 ^ number >> 63).cast_unsigned()
}

pub(super) fn unfold_sign(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}
