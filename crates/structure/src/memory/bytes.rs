//! Counts the memory that derived values take.

use std::iter::Sum;
use std::ops::Add;
use std::sync::Arc;

/// Bytes of memory, in the machine and on its devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// Of the machine's memory.
    pub host: usize,
    /// Of the memory of devices, as far as it is known.
    pub device: usize,
}

impl Bytes {
    /// Of the machine's memory.
    pub const fn host(bytes: usize) -> Self {
        Self { host: bytes, device: 0 }
    }
    /// Of a device's memory.
    pub const fn device(bytes: usize) -> Self {
        Self { host: 0, device: bytes }
    }
}

impl Add for Bytes {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { host: self.host + other.host, device: self.device + other.device }
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Add::add)
    }
}

/// A number of bytes for people: `1.5 MiB`; below a KiB `17 B`.
pub fn readable_bytes(n: usize) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB"];
    if n < 1 << 10 {
        return format!("{n} B");
    }
    let unit = ((n.ilog2() / 10 - 1) as usize).min(units.len() - 1);
    format!("{:.1} {}", n as f64 / (1u64 << (10 * (unit + 1))) as f64, units[unit])
}

/// Values that say how much memory they hold beyond their own size: what [`Attached`](crate::Attached) keeps.
pub trait CountBytes {
    /// What it holds now; of what is made on first use, what has been made.
    fn bytes(&self) -> Bytes;
}

impl<T: Copy> CountBytes for Vec<T> {
    fn bytes(&self) -> Bytes {
        Bytes::host(size_of::<T>() * self.capacity())
    }
}

/// Counted where it is held, also where others hold it too.
impl<T: Copy> CountBytes for Arc<[T]> {
    fn bytes(&self) -> Bytes {
        Bytes::host(size_of::<T>() * self.len())
    }
}

/// Counted where it is held, also where others hold it too.
impl<T: CountBytes> CountBytes for Arc<T> {
    fn bytes(&self) -> Bytes {
        (**self).bytes()
    }
}

impl<T: CountBytes> CountBytes for Option<T> {
    fn bytes(&self) -> Bytes {
        self.as_ref().map_or_else(Bytes::default, T::bytes)
    }
}

impl<A: CountBytes, B: CountBytes> CountBytes for (A, B) {
    fn bytes(&self) -> Bytes {
        self.0.bytes() + self.1.bytes()
    }
}

macro_rules! nothing_beyond {
    ($($t:ty),*) => {$(
        impl CountBytes for $t {
            fn bytes(&self) -> Bytes {
                Bytes::default()
            }
        }
    )*};
}
nothing_beyond!(
    (),
    bool,
    u8,
    u16,
    u32,
    u64,
    usize,
    i8,
    i16,
    i32,
    i64,
    isize,
    f32,
    f64,
    &'static str
);
