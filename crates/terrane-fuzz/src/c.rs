//! The C library, called as a C program calls it.

#![expect(unsafe_code, reason = "it is a C program in all but its language")]

use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;

// What is declared below.
use terrane_c as _;

use crate::mend::mend;

/// Pixels across of a window at most.
const ACROSS: u32 = 200;
/// Pixels across of a tile at most.
const SIDE: u32 = 512;
/// Bytes that a file may take.
const MEMORY: u64 = 256 << 20;
const OK: i32 = 0;
/// Bytes of a number, by the code of its type.
const SAMPLE_BYTES: [usize; 9] = [8, 1, 1, 2, 2, 4, 4, 4, 8];
/// Points of a query.
const POINTS: usize = 3;

/// `trn_open_settings`.
#[repr(C)]
struct OpenSettings {
    memory_limit: u64,
    threads: u32,
    is_cached_elsewhere: i32,
    read_all: Option<ReadAll>,
}

/// The first fields of `trn_info`, and room for the others.
#[repr(C)]
struct Info {
    width: u32,
    height: u32,
    tile: u32,
    levels: u32,
    affine: [f64; 6],
    is_georeferenced: i32,
    pixel_is_point: i32,
    horizontal_epsg: u32,
    vertical_epsg: u32,
    crs: *const c_char,
    wkt: *const c_char,
    geotiff: *const u8,
    geotiff_length: usize,
    sample: i32,
    rest: [u64; 64],
}

/// `trn_geo_keys`.
#[repr(C)]
struct GeoKeys {
    directory: *const u16,
    directory_length: usize,
    doubles: *const f64,
    doubles_length: usize,
    text: *const c_char,
}

/// `trn_level`.
#[repr(C)]
#[derive(Default)]
struct Level {
    width: u32,
    height: u32,
    rmse_m: f64,
    max_error_m: f64,
}

/// `trn_part`.
#[repr(C)]
struct Part {
    level: u32,
    column: u32,
    row: u32,
    width: u32,
    height: u32,
}

/// `trn_point`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Point {
    x: f64,
    y: f64,
    rest: [f64; 8],
}

type Error = *mut *mut c_char;
type Read = unsafe extern "C" fn(*mut c_void, u64, *mut c_void, usize) -> i64;
type ReadAll =
    unsafe extern "C" fn(*mut c_void, usize, *const u64, *const usize, *mut *mut c_void) -> i32;

unsafe extern "C" {
    fn trn_open_with(
        read: Read,
        user: *mut c_void,
        length: u64,
        options: *const OpenSettings,
        error: Error,
    ) -> *mut c_void;
    fn trn_close(file: *mut c_void);
    fn trn_free_string(text: *mut c_char);
    fn trn_describe(file: *const c_void, info: *mut Info, error: Error) -> i32;
    fn trn_describe_keys(file: *const c_void, keys: *mut GeoKeys, error: Error) -> i32;
    fn trn_describe_level(file: *const c_void, level: u32, out: *mut Level, error: Error) -> i32;
    fn trn_read_f32(
        file: *const c_void,
        part: *const Part,
        out: *mut f32,
        line: usize,
        error: Error,
    ) -> i32;
    fn trn_read_f64(
        file: *const c_void,
        part: *const Part,
        out: *mut f64,
        line: usize,
        error: Error,
    ) -> i32;
    fn trn_read_stored(
        file: *const c_void,
        part: *const Part,
        out: *mut c_void,
        line: usize,
        error: Error,
    ) -> i32;
    fn trn_read_tile(
        file: *const c_void,
        level: u32,
        column: u32,
        row: u32,
        out: *mut f32,
        error: Error,
    ) -> i32;
    fn trn_query(
        file: *const c_void,
        points: *mut Point,
        count: usize,
        epsg: u32,
        error: Error,
    ) -> i32;
}

/// The bytes from an offset on, as many as there are.
fn part(file: &[u8], offset: u64, length: usize) -> &[u8] {
    let first = usize::try_from(offset).map_or(file.len(), |offset| offset.min(file.len()));
    &file[first..first.saturating_add(length).min(file.len())]
}

unsafe extern "C" fn read(
    user: *mut c_void,
    offset: u64,
    buffer: *mut c_void,
    length: usize,
) -> i64 {
    // SAFETY: it is the file of `run`, which lives longer than what is open.
    let file = unsafe { &*user.cast::<Vec<u8>>() };
    let bytes = part(file, offset, length);
    // SAFETY: the library gives room for `length` bytes, which these are no more than.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer.cast(), bytes.len()) };
    bytes.len().cast_signed() as i64
}

unsafe extern "C" fn read_all(
    user: *mut c_void,
    count: usize,
    offsets: *const u64,
    lengths: *const usize,
    buffers: *mut *mut c_void,
) -> i32 {
    for index in 0..count {
        // SAFETY: the library gives as many of each.
        let (offset, length, buffer) = unsafe {
            (
                *offsets.add(index),
                *lengths.add(index),
                *buffers.add(index),
            )
        };
        // SAFETY: as the function's.
        let found = unsafe { read(user, offset, buffer, length) };
        if usize::try_from(found) != Ok(length) {
            return 1;
        }
    }
    OK
}

/// Where an error goes. Errors are expected; a fault is not.
struct Reported(*mut c_char);

impl Reported {
    fn new() -> Self {
        Self(null_mut())
    }

    fn place(&mut self) -> Error {
        self.clear();
        &raw mut self.0
    }

    fn clear(&mut self) {
        if self.0.is_null() {
            return;
        }
        // SAFETY: the library wrote a text, which is freed once.
        let text = unsafe { CStr::from_ptr(self.0) }
            .to_str()
            .map(str::to_owned);
        // SAFETY: as above.
        unsafe { trn_free_string(self.0) };
        self.0 = null_mut();
        let text = text.expect("an error is a text in UTF-8");
        assert!(!text.starts_with("a fault in terrane"), "{text}");
    }
}

impl Drop for Reported {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A file, after eight bytes that say what is read of it.
pub(crate) fn run(data: &[u8]) {
    let Some((choices, bytes)) = data.split_first_chunk::<8>() else {
        return;
    };
    let mut bytes = mend(bytes.to_vec());
    let settings = OpenSettings {
        memory_limit: MEMORY,
        threads: 1,
        is_cached_elsewhere: i32::from(choices[0] & 1),
        read_all: (choices[0] & 2 != 0).then_some(read_all),
    };
    let mut reported = Reported::new();
    let length = bytes.len() as u64;
    // SAFETY: the functions copy no more than they are asked for, and the bytes live until the file is closed.
    let file = unsafe {
        trn_open_with(
            read,
            (&raw mut bytes).cast(),
            length,
            &raw const settings,
            reported.place(),
        )
    };
    if !file.is_null() {
        use_file(file, *choices, &mut reported);
        // SAFETY: it is open, and used no more.
        unsafe { trn_close(file) };
    }
}

/// Describes an open file, reads and queries it.
fn use_file(file: *const c_void, choices: [u8; 8], reported: &mut Reported) {
    let mut info = std::mem::MaybeUninit::<Info>::zeroed();
    // SAFETY: the file is open, and there is room for a description.
    let info = unsafe {
        assert_eq!(trn_describe(file, info.as_mut_ptr(), reported.place()), OK);
        info.assume_init()
    };
    // SAFETY: the library says that texts end with a zero and arrays have their lengths while the file is open.
    unsafe {
        for text in [info.crs, info.wkt] {
            assert!(CStr::from_ptr(text).to_str().is_ok());
        }
        if !info.geotiff.is_null() {
            let bytes = std::slice::from_raw_parts(info.geotiff, info.geotiff_length);
            assert!(bytes.starts_with(b"II") || bytes.starts_with(b"MM"));
        }
    }
    let mut keys = std::mem::MaybeUninit::<GeoKeys>::zeroed();
    // SAFETY: as above.
    let _ = unsafe { trn_describe_keys(file, keys.as_mut_ptr(), reported.place()) };
    let [_, level, column, row, width, height, epsg, line] = choices.map(u32::from);
    let level = level % (info.levels + 1);
    let mut size = Level::default();
    // SAFETY: as above.
    let _ = unsafe { trn_describe_level(file, level, &raw mut size, reported.place()) };
    let part = Part {
        level,
        column: column * 4,
        row: row * 4,
        width: width.min(ACROSS),
        height: height.min(ACROSS),
    };
    read_part(file, &part, (line % 3) as usize, info.sample, reported);
    if info.tile <= SIDE {
        let mut tile = vec![0_f32; (info.tile * info.tile) as usize];
        // SAFETY: the file is open, and there is room for a tile.
        let _ = unsafe {
            trn_read_tile(
                file,
                level,
                column,
                row,
                tile.as_mut_ptr(),
                reported.place(),
            )
        };
    }
    let [x, across, _, y, _, down] = info.affine;
    let mut points = [Point::default(); POINTS];
    for (index, point) in points.iter_mut().enumerate() {
        let step = f64::from(index as u32);
        point.x = x + across * (f64::from(column) + step / 3.0);
        point.y = y + down * (f64::from(row) + step / 7.0);
    }
    let epsg = [0, info.horizontal_epsg, 4326, 3857, 70_000][epsg as usize % 5];
    // SAFETY: the file is open, and there are as many points.
    let _ = unsafe { trn_query(file, points.as_mut_ptr(), POINTS, epsg, reported.place()) };
}

/// Reads a window in all types.
fn read_part(file: *const c_void, part: &Part, apart: usize, sample: i32, reported: &mut Reported) {
    let (width, height) = (part.width as usize, part.height as usize);
    let line = if apart == 0 { 0 } else { width + apart };
    // Not one number more than is needed.
    let room = match height {
        0 => 0,
        _ => line.max(width) * (height - 1) + width,
    };
    let (mut narrow, mut wide) = (vec![0_f32; room], vec![0_f64; room]);
    let bytes = usize::try_from(sample).ok();
    let bytes = bytes.and_then(|sample| SAMPLE_BYTES.get(sample));
    let mut stored = vec![0_u8; room * bytes.expect("a type that the header names")];
    // SAFETY: the file is open, and there is room for a window of each type.
    unsafe {
        let first = trn_read_f32(file, part, narrow.as_mut_ptr(), line, reported.place());
        let second = trn_read_f64(file, part, wide.as_mut_ptr(), line, reported.place());
        assert_eq!(first, second, "a type of floats changes nothing else");
        let _ = trn_read_stored(
            file,
            part,
            stored.as_mut_ptr().cast(),
            line,
            reported.place(),
        );
    }
    let same = |(&narrow, &wide): (&f32, &f64)| {
        let wide = wide as f32;
        narrow == wide || narrow.is_nan() && wide.is_nan()
    };
    assert!(narrow.iter().zip(&wide).all(same));
}
