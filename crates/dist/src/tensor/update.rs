//! Sends updates of rows to the owner ranks.

use std::sync::PoisonError;

use super::dist_tensor::DistTensor;
use crate::comm::Failure;
use crate::element::DistElement;
use crate::error::DistError;
use crate::exchange::{Pack, Unpack, agree, exchange};

/// Updates of own rows from one rank: row numbers, and the values of these rows.
pub(crate) type Pushed<E> = (Vec<u32>, Vec<E>);

impl<E: DistElement> DistTensor<E> {
    /// Applies `f` to each updated row and its values, in the order of ranks and, inside a rank, of the list.
    /// Collective.
    pub(crate) fn update(
        &self,
        name: &'static str,
        ids: &[u64],
        values: &[E],
        f: impl Fn(&mut [E], &[E]),
    ) -> Result<(), DistError> {
        let width = self.width();
        let pushed = self.push(name, ids, values)?;
        let mut rows = self.store.rows.write().unwrap_or_else(PoisonError::into_inner);
        for (positions, values) in pushed {
            if width > 0 {
                positions
                    .iter()
                    .zip(values.chunks_exact(width))
                    .for_each(|(&r, v)| f(&mut rows[r as usize * width..][..width], v));
            }
        }
        Ok(())
    }

    /// Sends values to the owners of their rows, and returns the updates of own rows by sender. Collective.
    pub(crate) fn push(
        &self,
        name: &'static str,
        ids: &[u64],
        values: &[E],
    ) -> Result<Vec<Pushed<E>>, DistError> {
        let (comm, (owners, ty), width) = (self.graph().comm(), self.owners(), self.width());
        let check = || {
            owners.check(ty, ids)?;
            if values.len() == ids.len() * width {
                return Ok(());
            }
            let expected = format!(
                "{} values for {} rows of tensor `{}`",
                ids.len() * width,
                ids.len(),
                self.name()
            );
            Err(DistError::Config { arg: "values", expected, found: values.len().to_string() })
        };
        let messages = check().map(|()| {
            let mut by_owner = vec![(vec![], vec![]); comm.size()];
            for (i, &id) in ids.iter().enumerate() {
                let (owner, row) = owners.locate(ty, id);
                by_owner[owner].0.push(row);
                by_owner[owner].1.extend_from_slice(&values[i * width..][..width]);
            }
            let pack = |(rows, values): &(Vec<u32>, Vec<E>)| {
                Pack::default().with(self.name().as_bytes()).with(rows).with(values)
            };
            by_owner.iter().map(pack).collect()
        });
        let received = exchange(&**comm, name, messages)?;
        let read = |mut message: Unpack| {
            let theirs = message.list::<u8>()?;
            if theirs != self.name().as_bytes() {
                let (p, theirs) = (message.peer(), String::from_utf8_lossy(&theirs));
                let message = format!(
                    "`{name}` of `{}`, while rank {p} updates `{theirs}`; all ranks must make the same calls",
                    self.name()
                );
                return Err(Failure { rank: comm.rank(), message });
            }
            let rows = owners.read_rows(ty, &mut message)?;
            let values = message.list_of::<E>(rows.len() * width)?;
            Ok((rows, values))
        };
        let pushed = received.into_iter().map(read).collect::<Result<_, _>>();
        // If one rank cannot decode its message, no rank applies updates.
        agree(&**comm, "update", pushed.map_err(DistError::from))
    }
}
