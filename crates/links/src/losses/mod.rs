//! Losses over scores of true and corrupted links.
