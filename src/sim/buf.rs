//! Fields written into a sector or page, bounds-checked: a field that does not fit is left out.

/// Copies `bytes` to `offset`.
pub fn put(buffer: &mut [u8], offset: usize, bytes: &[u8]) {
    let place = offset
        .checked_add(bytes.len())
        .and_then(|end| buffer.get_mut(offset..end));
    if let Some(place) = place {
        place.copy_from_slice(bytes);
    }
}

/// One byte.
pub fn put8(buffer: &mut [u8], offset: usize, value: u8) {
    put(buffer, offset, &[value]);
}

/// Little-endian, 16 bits.
pub fn put16(buffer: &mut [u8], offset: usize, value: u16) {
    put(buffer, offset, &value.to_le_bytes());
}

/// Little-endian, 32 bits.
pub fn put32(buffer: &mut [u8], offset: usize, value: u32) {
    put(buffer, offset, &value.to_le_bytes());
}

/// Little-endian, the lower 48 bits.
pub fn put48(buffer: &mut [u8], offset: usize, value: u64) {
    let [a, b, c, d, e, f, _, _] = value.to_le_bytes();
    put(buffer, offset, &[a, b, c, d, e, f]);
}

/// Little-endian, 64 bits.
pub fn put64(buffer: &mut [u8], offset: usize, value: u64) {
    put(buffer, offset, &value.to_le_bytes());
}

/// Big-endian, 16 bits.
pub fn put_be16(buffer: &mut [u8], offset: usize, value: u16) {
    put(buffer, offset, &value.to_be_bytes());
}

/// Big-endian, 32 bits.
pub fn put_be32(buffer: &mut [u8], offset: usize, value: u32) {
    put(buffer, offset, &value.to_be_bytes());
}

/// Big-endian, 64 bits.
pub fn put_be64(buffer: &mut [u8], offset: usize, value: u64) {
    put(buffer, offset, &value.to_be_bytes());
}

/// Sets the last byte so that all bytes add up to 0 modulo 256.
pub fn seal(sector: &mut [u8]) {
    if let Some((last, rest)) = sector.split_last_mut() {
        *last = rest.iter().fold(0u8, |sum, b| sum.wrapping_sub(*b));
    }
}

/// ASCII padded with blanks to `len`, as SCSI fields want it.
pub fn padded(text: &str, len: usize) -> Vec<u8> {
    let mut out: Vec<u8> = text.bytes().take(len).collect();
    out.resize(len, b' ');
    out
}

/// The byte at `offset`, 0 past the end: a CDB is as if padded with zeros.
pub fn byte(bytes: &[u8], offset: usize) -> u8 {
    bytes.get(offset).copied().unwrap_or_default()
}
