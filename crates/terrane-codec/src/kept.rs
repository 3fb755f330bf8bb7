//! What was decoded and may be asked for again, within a weight.
//!
//! Where threads work, one of them fills a key and the others wait for it, and what is asked for again outlives what is asked
//! for once. WebAssembly has one thread and pays for every byte of a program: there it is a list, oldest first.

pub use of_target::Kept;

/// What came of asking for a key.
#[derive(Debug)]
pub enum Found<V> {
    /// It was here.
    Kept(V),
    /// It was made.
    Made(V),
    /// Another thread makes it, and took longer than one wanted to wait.
    Late,
}

#[cfg(not(target_family = "wasm"))]
mod of_target {
    use std::hash::Hash;
    use std::time::Duration;

    use quick_cache::sync::{Cache, DefaultLifecycle, GuardResult};
    use quick_cache::{DefaultHashBuilder, OptionsBuilder, Weighter};

    use super::Found;

    #[derive(Debug, Clone)]
    struct Weigh<V>(fn(&V) -> u64);

    impl<K, V> Weighter<K, V> for Weigh<V> {
        fn weight(&self, _: &K, value: &V) -> u64 {
            (self.0)(value)
        }
    }

    /// Values by their keys.
    #[derive(Debug)]
    pub struct Kept<K, V>(Cache<K, V, Weigh<V>>);

    impl<K: Eq + Hash + Clone, V: Clone> Kept<K, V> {
        /// Room for so much weight, which is about so many values; `hot` is the part for those that were asked for again.
        pub fn new(weight: u64, values: usize, hot: f64, weigh: fn(&V) -> u64) -> Self {
            let options = OptionsBuilder::new()
                .estimated_items_capacity(values)
                .weight_capacity(weight)
                // A value is a large part of all, which must not be divided further.
                .shards(1)
                .hot_allocation(hot)
                .build()
                .expect("the capacities are set");
            Self(Cache::with_options(
                options,
                Weigh(weigh),
                DefaultHashBuilder::default(),
                DefaultLifecycle::default(),
            ))
        }

        /// The weight of what is here.
        pub fn weight(&self) -> u64 {
            self.0.weight()
        }

        /// The value of a key, where it is here.
        pub fn get(&self, key: &K) -> Option<V> {
            self.0.get(key)
        }

        /// Whether a key's value is here.
        pub fn contains(&self, key: &K) -> bool {
            self.0.contains_key(key)
        }

        /// The value of a key, made where it is not here. Where making fails, the next one who asks tries again.
        pub fn get_or_make<E>(&self, key: &K, make: impl FnOnce() -> Result<V, E>) -> Result<V, E> {
            self.0.get_or_insert_with(key, make)
        }

        /// The same, and how it came; one waits for another thread that makes it so long at most.
        pub fn find_or_make<E>(
            &self,
            key: &K,
            patience: Option<Duration>,
            make: impl FnOnce() -> Result<V, E>,
        ) -> Result<Found<V>, E> {
            Ok(match self.0.get_value_or_guard(key, patience) {
                GuardResult::Value(value) => Found::Kept(value),
                GuardResult::Timeout => Found::Late,
                GuardResult::Guard(guard) => {
                    let value = make()?;
                    // What is too heavy to be kept is used all the same.
                    let _ = guard.insert(value.clone());
                    Found::Made(value)
                }
            })
        }
    }
}

// Also where tests run, so that they see it.
#[cfg(any(test, target_family = "wasm"))]
#[cfg_attr(
    not(target_family = "wasm"),
    expect(unreachable_pub, reason = "others see it on WebAssembly")
)]
mod list {
    use std::sync::{Mutex, MutexGuard, PoisonError};
    use std::time::Duration;

    use super::Found;

    /// Values by their keys.
    #[derive(Debug)]
    pub struct Kept<K, V> {
        /// Those used last at the end.
        entries: Mutex<Vec<(K, V)>>,
        most: u64,
        weigh: fn(&V) -> u64,
    }

    impl<K: Eq + Clone, V: Clone> Kept<K, V> {
        /// Room for so much weight.
        pub fn new(weight: u64, _values: usize, _hot: f64, weigh: fn(&V) -> u64) -> Self {
            Self {
                entries: Mutex::new(Vec::new()),
                most: weight,
                weigh,
            }
        }

        fn entries(&self) -> MutexGuard<'_, Vec<(K, V)>> {
            self.entries.lock().unwrap_or_else(PoisonError::into_inner)
        }

        fn weight_of(&self, entries: &[(K, V)]) -> u64 {
            entries.iter().map(|(_, value)| (self.weigh)(value)).sum()
        }

        /// The weight of what is here.
        pub fn weight(&self) -> u64 {
            self.weight_of(&self.entries())
        }

        /// The value of a key, where it is here.
        pub fn get(&self, key: &K) -> Option<V> {
            let mut entries = self.entries();
            let place = entries.iter().position(|(other, _)| other == key)?;
            let entry = entries.remove(place);
            let value = entry.1.clone();
            entries.push(entry);
            Some(value)
        }

        /// Whether a key's value is here.
        pub fn contains(&self, key: &K) -> bool {
            self.entries().iter().any(|(other, _)| other == key)
        }

        /// The value of a key, made where it is not here. Where making fails, the next one who asks tries again.
        pub fn get_or_make<E>(&self, key: &K, make: impl FnOnce() -> Result<V, E>) -> Result<V, E> {
            if let Some(value) = self.get(key) {
                return Ok(value);
            }
            // Not locked: making one may need others.
            let value = make()?;
            let mut entries = self.entries();
            entries.push((key.clone(), value.clone()));
            while self.weight_of(&entries) > self.most {
                entries.remove(0);
            }
            Ok(value)
        }

        /// The same, and how it came; there is nobody to wait for.
        pub fn find_or_make<E>(
            &self,
            key: &K,
            _patience: Option<Duration>,
            make: impl FnOnce() -> Result<V, E>,
        ) -> Result<Found<V>, E> {
            let is_here = self.contains(key);
            let value = self.get_or_make(key, make)?;
            Ok(if is_here {
                Found::Kept(value)
            } else {
                Found::Made(value)
            })
        }
    }
}

#[cfg(target_family = "wasm")]
use list as of_target;

#[cfg(test)]
mod tests {
    use super::*;

    /// What both do, and how they do it.
    macro_rules! keeps_what_was_used_last {
        ($name:ident, $kind:ty) => {
            #[test]
            fn $name() {
                let kept = <$kind>::new(10, 10, 0.5, |value| u64::from(*value));
                let make = |value| move || Ok::<u8, ()>(value);
                assert_eq!(kept.get_or_make(&1, make(4)), Ok(4));
                assert_eq!(kept.get_or_make(&1, make(5)), Ok(4));
                assert!(kept.contains(&1) && kept.get(&1) == Some(4) && kept.get(&2).is_none());
                assert_eq!(kept.get_or_make(&2, || Err(7)), Err(7));
                assert!(!kept.contains(&2));
                assert!(matches!(
                    kept.find_or_make(&2, None, make(3)),
                    Ok(Found::Made(3))
                ));
                assert!(matches!(
                    kept.find_or_make(&2, None, make(9)),
                    Ok(Found::Kept(3))
                ));
                assert_eq!(kept.weight(), 7);
                // One that is too heavy is used and not kept.
                assert_eq!(kept.get_or_make(&3, make(200)), Ok(200));
                assert!(!kept.contains(&3));
                for key in 4..40 {
                    assert_eq!(kept.get_or_make(&key, make(4)), Ok(4));
                    assert!(kept.weight() <= 10);
                }
                assert!(kept.weight() >= 4 && !kept.contains(&4));
            }
        };
    }

    keeps_what_was_used_last!(with_threads, Kept<u32, u8>);
    keeps_what_was_used_last!(on_one_thread, list::Kept<u32, u8>);
}
