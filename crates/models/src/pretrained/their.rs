//! Names and places of parameters in another framework.

use std::ops::Range;

/// Where another framework keeps a parameter, and how it lies there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Their {
    pub(super) name: String,
    pub(super) transposed: bool,
    pub(super) part: Part,
}

/// How a parameter and the tensor of that name belong together; axes in our order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// They are the same.
    Whole,
    /// The parameter is some of so many rows.
    Rows { range: Range<usize>, of: usize },
    /// The first half of the columns; the other half has this name.
    Beside(String),
    /// The tensor is the sum of this parameter and another: read as 0 here.
    Term,
}

impl Their {
    fn new(name: impl Into<String>, transposed: bool) -> Self {
        Self { name: name.into(), transposed, part: Part::Whole }
    }

    /// Under `name`, with its axes in our order. Fields of Burn's `Linear` and norms are translated without being told:
    /// `Linear` is transposed, `gamma` and `beta` are `weight` and `bias`.
    pub fn same(name: impl Into<String>) -> Self {
        Self::new(name, false)
    }
    /// Under `name`, a matrix with its axes the other way round.
    pub fn transposed(name: impl Into<String>) -> Self {
        Self::new(name, true)
    }
    /// As the rows `range` (in our order of axes) of a tensor with `of` rows.
    #[must_use]
    pub fn rows(mut self, range: Range<usize>, of: usize) -> Self {
        self.part = Part::Rows { range, of };
        self
    }
    /// In two halves: the first columns under the name so far, the others under `second`.
    #[must_use]
    pub fn beside(mut self, second: impl Into<String>) -> Self {
        self.part = Part::Beside(second.into());
        self
    }
    /// Added to another parameter of the same name, which the tensor is loaded into; this one becomes 0.
    #[must_use]
    pub fn term(mut self) -> Self {
        self.part = Part::Term;
        self
    }
    /// With a prefix before the name.
    #[must_use]
    pub fn under(mut self, prefix: &str) -> Self {
        self.name.insert_str(0, prefix);
        if let Part::Beside(second) = &mut self.part {
            second.insert_str(0, prefix);
        }
        self
    }

    /// With a suffix behind the name.
    #[must_use]
    pub fn followed_by(mut self, suffix: &str) -> Self {
        self.name.push_str(suffix);
        if let Part::Beside(second) = &mut self.part {
            second.push_str(suffix);
        }
        self
    }

    /// What fields of Burn's own modules add to it.
    pub(super) fn inside(mut self, container: &str, rank: usize) -> Self {
        match container {
            "Struct:Linear" if rank == 2 => self.transposed = true,
            "Struct:LayerNorm" | "Struct:BatchNorm" => {
                for (ours, theirs) in [("gamma", "weight"), ("beta", "bias")] {
                    if let Some(start) = self.name.strip_suffix(ours) {
                        self.name = format!("{start}{theirs}");
                    }
                }
            }
            _ => {}
        }
        self
    }
}
