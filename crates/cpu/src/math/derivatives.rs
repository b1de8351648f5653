//! Derivatives of message operators with respect to one operand.

use crate::number::Acc;

/// The derivative of a message with respect to one operand ("own"), times the gradient of the message.
pub(crate) trait Chain: Sync {
    /// Whether the derivative reads the operand itself.
    const OWN: bool = false;
    /// Whether the derivative reads the other operand.
    const OTHER: bool = false;
    fn apply<A: Acc>(grad: A, own: A, other: A) -> A;
}

macro_rules! chains {
    ($($name:ident, $own:literal, $other:literal, |$g:ident, $w:ident, $x:ident| $body:expr;)*) => {$(
        pub(crate) struct $name;
        impl Chain for $name {
            const OWN: bool = $own;
            const OTHER: bool = $other;
            #[inline(always)]
            fn apply<A: Acc>($g: A, $w: A, $x: A) -> A {
                $body
            }
        }
    )*};
}

chains! {
    Pass, false, false, |g, _w, _x| g;
    Minus, false, false, |g, _w, _x| -g;
    Times, false, true, |g, _w, x| g * x;
    Over, false, true, |g, _w, x| g / x;
    // Not g·x / w²: w² overflows or underflows long before the quotient does.
    Quotient, true, true, |g, w, x| -(g * (x / w)) / w;
}
