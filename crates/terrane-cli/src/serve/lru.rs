//! A store of bounded size that forgets what was used longest ago.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

/// Bytes that a value takes besides its own: its key, twice, and its places in the store.
const OVERHEAD: usize = 256;

/// Values by key, within a number of bytes altogether.
#[derive(Debug)]
pub(crate) struct Lru<K, V> {
    most_bytes: usize,
    kept: Mutex<Kept<K, V>>,
}

#[derive(Debug)]
struct Kept<K, V> {
    clock: u64,
    bytes: usize,
    values: HashMap<K, Entry<V>>,
    /// Keys by the time they were last used.
    order: BTreeMap<u64, K>,
}

#[derive(Debug)]
struct Entry<V> {
    used: u64,
    bytes: usize,
    value: V,
}

impl<K: Hash + Eq + Clone, V: Clone> Lru<K, V> {
    /// An empty store of so many bytes.
    pub(crate) fn new(most_bytes: usize) -> Self {
        Self {
            most_bytes,
            kept: Mutex::new(Kept {
                clock: 0,
                bytes: 0,
                values: HashMap::new(),
                order: BTreeMap::new(),
            }),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Kept<K, V>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value of a key, which counts as used now.
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        let mut kept = self.lock();
        let Kept {
            clock,
            values,
            order,
            ..
        } = &mut *kept;
        let entry = values.get_mut(key)?;
        *clock += 1;
        order.remove(&entry.used);
        order.insert(*clock, key.clone());
        entry.used = *clock;
        Some(entry.value.clone())
    }

    /// Keeps a value of so many bytes; one that is larger than everything allowed is not kept.
    pub(crate) fn insert(&self, key: K, value: V, bytes: usize) {
        let bytes = bytes.saturating_add(OVERHEAD);
        if bytes > self.most_bytes {
            return;
        }
        let mut kept = self.lock();
        kept.clock += 1;
        let used = kept.clock;
        let entry = Entry { used, bytes, value };
        kept.bytes += bytes;
        kept.order.insert(used, key.clone());
        if let Some(old) = kept.values.insert(key, entry) {
            kept.bytes -= old.bytes;
            kept.order.remove(&old.used);
        }
        while kept.bytes > self.most_bytes {
            let Some((_, oldest)) = kept.order.pop_first() else {
                break;
            };
            if let Some(entry) = kept.values.remove(&oldest) {
                kept.bytes -= entry.bytes;
            }
        }
    }

    /// Bytes that are kept now.
    pub(crate) fn bytes(&self) -> usize {
        self.lock().bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_goes_first_and_the_bound_holds() {
        let store = Lru::new(10 + 3 * OVERHEAD);
        for key in 0..3 {
            store.insert(key, key * 10, 3);
        }
        assert_eq!(store.get(&0), Some(0));
        store.insert(3, 30, 4);
        assert_eq!(store.get(&1), None);
        assert_eq!((store.get(&0), store.get(&3)), (Some(0), Some(30)));
        assert!(store.bytes() <= 10 + 3 * OVERHEAD);
        store.insert(0, 5, 2);
        assert_eq!((store.get(&0), store.bytes()), (Some(5), 9 + 3 * OVERHEAD));
        store.insert(9, 90, 11 + 2 * OVERHEAD);
        assert_eq!(store.get(&9), None);
        let kept = store.lock();
        assert_eq!(kept.order.len(), kept.values.len());
    }
}
