//! Writes a model's file in the small form that the decoder for browsers takes: `pack MODEL.safetensors OUT`.

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(model), Some(out)) = (words.next(), words.next()) else {
        return Err("usage: pack MODEL.safetensors OUT".into());
    };
    let bytes = std::fs::read(model)?;
    let packed = terrane_context::pack(&bytes)?;
    // What cannot be made whole again would be found only in somebody's browser.
    if terrane_context::unpack(packed.clone())? != bytes {
        return Err("the packed form does not come back as the model".into());
    }
    std::fs::write(out, packed)?;
    Ok(())
}
