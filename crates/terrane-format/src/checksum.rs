//! CRC-32C, the checksum of iSCSI, ext4 and Zarr.
#![expect(clippy::cast_possible_truncation, reason = "an index of 256 fits")]

const POLYNOMIAL: u32 = 0x82f6_3b78;

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut value = index as u32;
        let mut bit = 0;
        while bit < 8 {
            value = if value & 1 == 1 {
                (value >> 1) ^ POLYNOMIAL
            } else {
                value >> 1
            };
            bit += 1;
        }
        table[index] = value;
        index += 1;
    }
    table
};

/// The checksum of several parts, one after another.
pub(crate) fn crc32c(parts: &[&[u8]]) -> u32 {
    let mut value = u32::MAX;
    for byte in parts.iter().copied().flatten() {
        value = TABLE[((value ^ u32::from(*byte)) & 0xff) as usize] ^ (value >> 8);
    }
    !value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_castagnolis() {
        assert_eq!(crc32c(&[b"123456789"]), 0xe306_9283);
        assert_eq!(crc32c(&[b"1234", b"", b"56789"]), 0xe306_9283);
    }
}
