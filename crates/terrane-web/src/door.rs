//! What JavaScript calls.
//!
//! No pointer comes in: JavaScript writes into [`buffer`] and reads at [`answer`], both of which belong to this module
//! and stay where they are until the next call.

use std::cell::RefCell;

use serde_json::Value;

use crate::{Answer, Request, Session, value};

/// Answers, as JavaScript counts them.
const FAILED: u32 = 0;
const VALUE: u32 = 1;
const BYTES: u32 = 2;
const NEEDED: u32 = 3;

#[derive(Default)]
struct Door {
    session: Session,
    buffer: Vec<u8>,
    answer: Vec<u8>,
}

thread_local! {
    static DOOR: RefCell<Door> = RefCell::default();
}

fn written(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    value::write(&mut bytes, value);
    bytes
}

impl Door {
    fn say(&mut self, answer: Answer) -> u32 {
        let (kind, bytes) = match answer {
            Answer::Failed(sentence) => (FAILED, sentence.into_bytes()),
            Answer::Value(value) => (VALUE, written(&value)),
            Answer::Bytes(bytes) => (BYTES, bytes),
            Answer::Needed(value) => (NEEDED, written(&value)),
        };
        self.answer = bytes;
        kind
    }
}

/// Room for what JavaScript gives, so many bytes.
#[expect(unsafe_code, reason = "a name that JavaScript calls")]
// SAFETY: no other function of this module has the name.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn buffer(length: usize) -> *mut u8 {
    DOOR.with_borrow_mut(|door| {
        door.buffer = vec![0; length];
        door.buffer.as_mut_ptr()
    })
}

/// Answers the request in the buffer.
#[expect(unsafe_code, reason = "a name that JavaScript calls")]
// SAFETY: no other function of this module has the name.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ask() -> u32 {
    DOOR.with_borrow_mut(|door| {
        let bytes = std::mem::take(&mut door.buffer);
        let answer = match Request::read(&bytes) {
            Ok(request) => door.session.ask(request),
            Err(error) => Answer::Failed(error.to_string()),
        };
        door.say(answer)
    })
}

/// Takes the bytes in the buffer for a part of a file; `length` is that of the file, or no number.
#[expect(unsafe_code, reason = "a name that JavaScript calls")]
// SAFETY: no other function of this module has the name.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn give(file: u32, offset: f64, length: f64) {
    DOOR.with_borrow_mut(|door| {
        let bytes = std::mem::take(&mut door.buffer);
        let length = (length >= 0.0).then_some(length as u64);
        door.session.give(file, offset as u64, bytes, length);
    });
}

/// Takes the bytes in the buffer for the file of a model.
#[expect(unsafe_code, reason = "a name that JavaScript calls")]
// SAFETY: no other function of this module has the name.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn model() -> u32 {
    DOOR.with_borrow_mut(|door| {
        let bytes = std::mem::take(&mut door.buffer);
        let answer = door.session.load(bytes);
        door.say(answer)
    })
}

/// Where the answer lies.
#[expect(unsafe_code, reason = "a name that JavaScript calls")]
// SAFETY: no other function of this module has the name.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn answer() -> *const u8 {
    DOOR.with_borrow(|door| door.answer.as_ptr())
}

/// Bytes of the answer.
#[expect(unsafe_code, reason = "a name that JavaScript calls")]
// SAFETY: no other function of this module has the name.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn answer_length() -> usize {
    DOOR.with_borrow(|door| door.answer.len())
}
