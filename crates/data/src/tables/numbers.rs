//! Selects number attributes of a table by their names in its header.

use burn::tensor::{FloatDType, Tensor};
use burn_gnn_files::DataError;
use burn_gnn_graph::Frame;

use super::schema::attr_type::AttrType;
use super::schema::column_names::{DOUBLE_ATTRS, FLOAT_ATTRS, INT_ATTRS};
use super::schema::decoder::{Decoder, Slot};
use crate::columns::narrow::{self, NotF32};
use crate::files::decoder_error;

impl Decoder {
    /// Selects attributes of a CSV or Parquet table that are numbers or vectors, by their names in its header:
    /// `[rows, columns]`, in f32, in the given order. `frame` contains the nodes or edges that this decoder read.
    ///
    /// ```
    /// use burn::tensor::{Device, Tensor};
    /// use burn_gnn_data::{AttrType, Builder, Csv, Decoder};
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("items.csv");
    /// std::fs::write(&path, "id,stock,price\n7,3,0.5\n9,4,2\n")?;
    /// let csv = Csv::new(["stock", "price"]);
    /// let items = Decoder::new().with_attributes([AttrType::Int, AttrType::Float]).csv(csv);
    /// let g = Builder::new().node(&path, "item", items.clone()).build(&Device::flex())?;
    /// let x = items.numbers(g.nodes("item")?, ["price", "stock"])?;
    /// x.into_data().assert_eq(&Tensor::<2>::from_data([[0.5, 3.0], [2.0, 4.0]], &Device::flex()).into_data(), true);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`DataError::Decoder`]: no names, a name that is not a column of attributes, an attribute that is not a number, a
    /// frame with another number of attributes, a whole number or an f64 that f32 cannot represent
    /// ([`round_floats`](Self::round_floats) rounds to the nearest f32). [`DataError::Graph`]: a frame without attributes.
    ///
    /// # Cost
    /// A copy of the columns on their device; whole numbers and f64 are validated on the host.
    pub fn numbers<'a>(
        &self,
        frame: &Frame,
        columns: impl IntoIterator<Item = &'a str>,
    ) -> Result<Tensor<2>, DataError> {
        let refuse = |message: String| decoder_error("columns", message);
        let names = self.csv.as_ref().map_or(&[][..], |csv| &csv.attributes);
        let (slots, widths) = (self.slots(), self.widths());
        let mut parts = vec![];
        for name in columns {
            let Some(at) = names.iter().position(|n| n == name) else {
                let message = format!("expected names of attributes, {names:?}, got `{name}`");
                return Err(refuse(message));
            };
            let check = |found: usize, expected: usize| {
                if found == expected {
                    return Ok(());
                }
                let of = frame.label();
                Err(refuse(format!(
                    "`{name}`: expected {of} with {expected} attributes of its kind, found {found}; give the frame of \
                     the table that this decoder has read"
                )))
            };
            parts.push(match (slots.get(at), self.attr_types.get(at)) {
                (Some(&Slot::Float(j)), ty) => {
                    let all = frame.get::<2>(FLOAT_ATTRS)?;
                    check(all.dims()[1], widths[0])?;
                    let count = if let Some(AttrType::Vector { size }) = ty { *size } else { 1 };
                    all.narrow(1, j, count as usize).cast(FloatDType::F32)
                }
                (Some(&Slot::Double(j)), _) => {
                    let all = frame.get::<2>(DOUBLE_ATTRS)?;
                    check(all.dims()[1], widths[3])?;
                    let column = all.narrow(1, j, 1);
                    let data = column.clone().into_data();
                    self.round(name, data.iter::<f64>(), narrow::from_f64)?;
                    column.cast(FloatDType::F32)
                }
                (Some(&Slot::Int(j)), Some(AttrType::Int)) => {
                    let all = frame.get_int::<2>(INT_ATTRS)?;
                    check(all.dims()[1], widths[1])?;
                    let column = all.narrow(1, j, 1);
                    let data = column.clone().into_data();
                    self.round(name, data.iter::<i64>(), narrow::from_i64)?;
                    column.cast(FloatDType::F32)
                }
                (_, found) => {
                    let found = found.map_or("none".into(), |found| format!("{found:?}"));
                    return Err(refuse(format!(
                        "`{name}`: expected `AttrType::Float` or `AttrType::Int`, got {found}; encode it by a \
                         `FeatureEncoder`"
                    )));
                }
            });
        }
        if parts.is_empty() {
            return Err(refuse("expected at least one name, got none".into()));
        }
        Ok(Tensor::cat(parts, 1))
    }

    /// Counts the numbers that f32 cannot represent, or returns an error for the first of them.
    fn round<T: Copy + std::fmt::Display>(
        &self,
        name: &str,
        numbers: impl Iterator<Item = T>,
        narrow: impl Fn(T) -> Result<f32, NotF32>,
    ) -> Result<(), DataError> {
        for x in numbers {
            narrow::rounded(narrow(x), self.rounding()).map_err(|_| {
                let message = format!(
                    "`{name}`: expected {}, found {x}; `Decoder::round_floats` takes the nearest f32",
                    narrow::REPRESENTABLE
                );
                decoder_error("columns", message)
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::{Builder, Csv};

    #[test]
    fn whole_numbers_beyond_f32() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("items.csv");
        std::fs::write(&path, "id,time\n7,16777216\n9,16777217\n").unwrap();
        let items = Decoder::new().with_attributes([AttrType::Int]).csv(Csv::new(["time"]));
        let g = Builder::new().node(&path, "item", items.clone()).build(&Device::flex()).unwrap();
        let frame = g.nodes("item").unwrap();
        let e = items.numbers(frame, ["time"]).unwrap_err().to_string();
        assert!(
            e.contains("`time`: expected a number that f32 can represent, found 16777217"),
            "{e}"
        );
        let x = items.round_floats().numbers(frame, ["time"]).unwrap();
        assert_eq!(x.into_data().try_to_vec::<f32>().unwrap(), [16_777_216.0; 2]);
    }

    #[test]
    fn attributes_that_are_not_numbers_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("items.csv");
        std::fs::write(&path, "id,stock,price,title\n7,3,0.5,a\n9,4,2,b\n").unwrap();
        let csv = Csv::new(["stock", "price", "title"]);
        let types = [AttrType::Int, AttrType::Float, AttrType::Text];
        let items = Decoder::new().with_attributes(types).csv(csv);
        let read = |decoder: &Decoder| {
            Builder::new().node(&path, "item", decoder.clone()).build(&Device::flex()).unwrap()
        };
        let g = read(&items);
        let frame = g.nodes("item").unwrap();
        let refused = |decoder: &Decoder, names: &[&str]| {
            decoder.numbers(frame, names.iter().copied()).unwrap_err().to_string()
        };
        for (names, part) in [
            (&["cost"][..], "got `cost`"),
            (&["price", "title"], "`title`: expected `AttrType::Float` or `AttrType::Int`"),
            (&[], "at least one name"),
        ] {
            assert!(refused(&items, names).contains(part), "{}", refused(&items, names));
        }
        let two =
            Decoder::new().with_attributes([AttrType::Float; 2]).csv(Csv::new(["stock", "price"]));
        let text = refused(&two, &["price"]);
        assert!(
            text.contains("expected nodes of `item` with 2 attributes of its kind, found 1"),
            "{text}"
        );
        assert!(
            refused(&Decoder::new().with_attributes([AttrType::Float]), &["price"]).contains("[]")
        );
        let both = read(&two);
        let x = two.numbers(both.nodes("item").unwrap(), ["price", "price"]).unwrap();
        assert_eq!(x.into_data().try_to_vec::<f32>().unwrap(), [0.5, 0.5, 2.0, 2.0]);
    }
}
