//! Models that rank entities which training has not seen.
