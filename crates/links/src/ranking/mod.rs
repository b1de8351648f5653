//! Ranks candidates in bounded memory, and selects the best of them.
