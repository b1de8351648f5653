//! Panics with the text of an error.

use std::fmt::Display;

/// Unwraps results whose error is a programming error of the caller.
pub trait OrPanic<T> {
    /// The value of `Ok`.
    ///
    /// # Panics
    /// With the text of the error, at the line of the caller. `unwrap_or_else` with a closure would report the line of
    /// the closure.
    #[track_caller]
    fn or_panic(self) -> T;
}

impl<T, E: Display> OrPanic<T> for Result<T, E> {
    fn or_panic(self) -> T {
        match self {
            Ok(value) => value,
            Err(e) => panic!("{e}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn panics_at_the_line_of_the_caller() {
        static LINE: Mutex<u32> = Mutex::new(0);
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(|info| {
            // Other tests may panic in parallel.
            if let Some(at) = info.location().filter(|at| at.file() == file!()) {
                *LINE.lock().unwrap() = at.line();
            }
        }));
        let wrong: Result<u8, &str> = Err("of the call");
        let line = line!() + 1;
        let panicked = catch_unwind(AssertUnwindSafe(|| wrong.or_panic()));
        std::panic::set_hook(before);
        assert_eq!(panicked.unwrap_err().downcast_ref::<String>().unwrap(), "of the call");
        assert_eq!(*LINE.lock().unwrap(), line);
        assert_eq!(Ok::<_, u8>(7).or_panic(), 7);
    }
}
