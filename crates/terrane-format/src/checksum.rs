//! The checksum of the format: CRC-32C.

#[cfg(not(target_family = "wasm"))]
pub use crc32c::crc32c;
#[cfg(not(target_family = "wasm"))]
pub(crate) use crc32c::crc32c_append;
#[cfg(target_family = "wasm")]
pub use plain::crc32c;
#[cfg(target_family = "wasm")]
pub(crate) use plain::crc32c_append;

// Also where tests run, so that they see it.
#[cfg(any(test, target_family = "wasm"))]
#[cfg_attr(
    not(target_family = "wasm"),
    expect(unreachable_pub, reason = "others see it on WebAssembly")
)]
mod plain {
    /// The polynomial, lowest power first.
    const POLYNOMIAL: u32 = 0x82f6_3b78;

    /// Bit by bit: WebAssembly has no instruction for it, a browser checks little, and the library's tables are eight
    /// kilobytes that everybody would download.
    pub fn crc32c(bytes: &[u8]) -> u32 {
        crc32c_append(0, bytes)
    }

    /// That of bytes and those before them, whose checksum is known.
    pub(crate) fn crc32c_append(before: u32, bytes: &[u8]) -> u32 {
        let mut crc = !before;
        for &byte in bytes {
            crc ^= u32::from(byte);
            for _ in 0..8 {
                crc = crc >> 1 ^ (POLYNOMIAL & (crc & 1).wrapping_neg());
            }
        }
        !crc
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn both_ways_give_the_same() {
        // RFC 3720, B.4.
        assert_eq!(super::plain::crc32c(&[0; 32]), 0x8a91_36aa);
        let bytes: Vec<u8> = (0..2000_u32)
            .map(|at| ((at * at) >> 3).to_le_bytes()[0])
            .collect();
        for length in [0, 1, 7, 8, 9, 1000, 2000] {
            let bytes = &bytes[..length];
            let crc = super::plain::crc32c(bytes);
            assert_eq!(crc, super::crc32c(bytes));
            let append = super::plain::crc32c_append;
            assert_eq!(append(crc, b"more"), super::crc32c_append(crc, b"more"));
        }
    }
}
