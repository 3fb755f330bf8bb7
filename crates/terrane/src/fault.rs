//! Panics: faults of the program, which every door says in the same words.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A panic, as an error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a fault in terrane, please report it: {message}")]
pub struct Fault {
    /// What it says of itself.
    pub message: String,
}

impl Fault {
    /// Runs work whose panic, on this thread or on one that it starts, becomes an error.
    pub fn catch<T>(work: impl FnOnce() -> T) -> Result<T, Self> {
        // What a panic leaves half done is not seen again: files are read only, and locks that it poisons are taken anyway.
        catch_unwind(AssertUnwindSafe(work)).map_err(|panic| Self::of(&*panic))
    }

    /// The error of what a thread or a task left behind when it panicked.
    pub fn of(panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Self {
            message: text.unwrap_or("without a message").to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use terrane_codec::Resources;
    use terrane_codec::format::Window;
    use terrane_geo::{
        Crs, Existing, Georeference, Grid, Kind, MemoryRaster, Output, RasterInfo, RasterSource,
        SampleType, Storage,
    };

    use super::*;
    use crate::{Destination, Settings, Target, encode};

    /// A raster whose reader has a fault.
    struct Faulty(MemoryRaster);

    impl RasterSource for Faulty {
        fn info(&self) -> &RasterInfo {
            self.0.info()
        }

        #[expect(clippy::panic_in_result_fn, reason = "the fault that is looked for")]
        fn read(&self, _: usize, window: Window) -> terrane_geo::Result<Grid> {
            panic!("a row too many at {}", window.row)
        }
    }

    #[test]
    fn a_panic_is_an_error_with_its_message() {
        assert_eq!(Fault::catch(|| 7), Ok(7));
        let fault = Fault::catch(|| panic!("a {} too many", "row")).unwrap_err();
        let text = "a fault in terrane, please report it: a row too many";
        assert_eq!(fault.to_string(), text);
        let fault = Fault::catch(|| std::panic::panic_any(7)).unwrap_err();
        assert_eq!(fault.message, "without a message");
    }

    #[test]
    fn a_worker_that_panics_is_a_fault_and_no_stop() {
        let work = || {
            terrane_codec::parallel::in_parallel(64, 4, &|index| {
                assert!(index != 40, "tile {index} is beyond the raster");
                Ok(index)
            })
        };
        let fault = Fault::catch(work).unwrap_err();
        assert_eq!(fault.message, "tile 40 is beyond the raster");
    }

    #[test]
    fn an_encoding_that_panics_is_a_fault_and_leaves_nothing() {
        let grid = Grid::new(300, 40, vec![7.5; 300 * 40]);
        let storage = Storage::metres(SampleType::F32, None);
        let georeference = Georeference::of_pixels(Crs::default());
        let raster = Faulty(MemoryRaster::new("faulty", grid, georeference, storage));
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("x.trn");
        for target in [Target::Default, Target::Bpp(1.0)] {
            let settings = Settings {
                target,
                ..Settings::default()
            };
            let prepared = settings.prepare(Resources::of_jobs(4).memory).unwrap();
            let destination = Destination {
                out: Output::new(&out, Existing::Refuse, Kind::Terrain),
                resumable: None,
                resources: Resources::of_jobs(4),
            };
            let outcome = Fault::catch(|| {
                encode(&raster, &prepared, destination, &mut |_| Ok(())).map(|_| ())
            });
            assert_eq!(outcome.unwrap_err().message, "a row too many at 0");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
