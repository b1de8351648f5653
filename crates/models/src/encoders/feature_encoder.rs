//! Encodes table attributes as features and embeddings.

use std::collections::HashMap;

use burn::config::Config;
use burn::module::{Module, Param};
use burn::tensor::{Device, FloatDType, Tensor, TensorData};
use burn_gnn_data::{Decoder, FeatureKind, FeatureSpec};
use burn_gnn_graph::{Frame, Relation};
use burn_gnn_ops::{Reduce, Side, Stream, gspmm_copy, next_stream};

use crate::encoders::encoder_input::{
    EncoderInput, HostColumns, PartInput, lookup, numbers_of, runs,
};
use crate::error::ModelError;
use crate::params::init;
use crate::params::init::panicking_init;

/// Describes a [`FeatureEncoder`]. Save it with the weights to restore the encoder.
///
/// It contains everything that is computed from data: the keys of growing embeddings ([`learn_keys`](Self::learn_keys))
/// and the statistics of numbers ([`fit_numbers`](Self::fit_numbers)).
#[derive(Config, Debug)]
pub struct FeatureEncoderConfig {
    /// Types and embedding dimensions of the attributes, as for reading the table.
    pub decoder: Decoder,
    /// Columns of attributes that are not features; see [`without`](Self::without).
    pub excluded: Option<Vec<String>>,
    /// How the embeddings of several values of a node are combined. GraphLearn documents a sum; its TensorFlow code
    /// computes a mean.
    #[config(default = "Reduce::Sum")]
    pub combiner: Reduce,
    /// Mean of each number attribute, which is subtracted. Empty: numbers are not standardised.
    #[config(default = "vec![]")]
    pub means: Vec<f32>,
    /// Standard deviation of each number attribute. Attributes that are not constant are divided by it.
    #[config(default = "vec![]")]
    pub deviations: Vec<f32>,
    /// Keys of each growing embedding, in the order of the rows.
    #[config(default = "vec![]")]
    pub keys: Vec<Vec<i64>>,
    /// Number of rows from which an embedding table is sparse; growing tables are sparse for any number of rows. `None`: no
    /// table is sparse. Sparse tables are trained by [`FeatureEncoder::forward_rows`] and
    /// [`SparseAdam`](crate::SparseAdam), not by an optimizer of Burn.
    pub sparse_from: Option<usize>,
}

/// Encodes the attributes of a table as node features: numbers (optionally standardised), an embedding per category, and
/// the sum or mean of embeddings for lists of values.
///
/// The features of all attributes are concatenated in the order of the attributes; [`spec`](Self::spec) prints the layout.
///
/// # Gradients
/// The gradient of an embedding is the sum over the nodes with its value, in node order: the same bits for any number of
/// threads. Embeddings without a node have gradient 0.
///
/// # Cost
/// One pass over the embeddings that the input reads. The gradient of an embedding table has the size of the table, unless
/// the table is sparse ([`FeatureEncoderConfig::sparse_from`]).
///
/// ```
/// use burn::tensor::Device;
/// use burn_gnn_data::{AttrType, Builder, Decoder};
/// use burn_gnn_models::FeatureEncoderConfig;
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("users");
/// std::fs::write(&path, "id:int64\tfeature:string\n7\tbonn:0.5\n9\tköln:2\n").unwrap();
/// let types = [AttrType::string_buckets(100), AttrType::Float];
/// let decoder = Decoder::new().with_attributes(types).with_dims([Some(8), None]);
/// let device = Device::flex();
/// let g = Builder::new().node(&path, "user", decoder.clone()).build(&device)?;
/// let users = g.nodes("user")?;
/// let encoder = FeatureEncoderConfig::new(decoder).fit_numbers(users, &[0, 1])?.init(&device);
/// assert_eq!(encoder.forward(&encoder.input(users)?).dims(), [2, 9]);
/// assert_eq!(encoder.forward(&encoder.input_rows(users, &[1])?).dims(), [1, 9]); // a batch of ids
/// # Ok::<(), burn_gnn_models::ModelError>(())
/// ```
#[derive(Module, Debug)]
pub struct FeatureEncoder {
    /// `[rows, dim]` per attribute with an embedding, in the order of the attributes.
    pub tables: Vec<Param<Tensor<2>>>,
    /// `[numbers]`, subtracted from number attributes. Not trained.
    pub mean: Option<Param<Tensor<1>>>,
    /// `[numbers]`, by which number attributes are multiplied afterwards. Not trained.
    pub scale: Option<Param<Tensor<1>>>,
    #[module(skip)]
    layout: Layout,
}

/// The state of an encoder that training does not change.
#[derive(Clone, Debug)]
struct Layout {
    config: FeatureEncoderConfig,
    spec: FeatureSpec,
    /// Row of each key, by growing table.
    keys: Vec<HashMap<i64, u32>>,
    /// Random streams of the initial rows, by table. Rows of later keys use them too.
    streams: Vec<Stream>,
    /// Whether a table is sparse, by table.
    sparse: Vec<bool>,
}

impl FeatureEncoderConfig {
    /// Excludes attributes that are not features, such as names and labels, by their columns in a CSV or Parquet table.
    ///
    /// ```
    /// use burn_gnn_data::{AttrType, Csv, Decoder};
    /// use burn_gnn_models::FeatureEncoderConfig;
    /// let csv = Csv::new(["price", "title"]);
    /// let decoder = Decoder::new().with_attributes([AttrType::Float, AttrType::Text]).csv(csv);
    /// assert_eq!(FeatureEncoderConfig::new(decoder).without(["title"]).spec()?.width(), 1);
    /// # Ok::<(), burn_gnn_models::ModelError>(())
    /// ```
    #[must_use]
    pub fn without(mut self, columns: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let columns = columns.into_iter().map(Into::into);
        self.excluded.get_or_insert_default().extend(columns);
        self
    }

    /// Returns the layout of the output.
    ///
    /// # Errors
    /// As [`Decoder::feature_spec_without`].
    pub fn spec(&self) -> Result<FeatureSpec, ModelError> {
        Ok(self.decoder.feature_spec_without(self.excluded.as_deref().unwrap_or_default())?)
    }

    /// Appends the keys of growing embeddings that `frame` contains and that are new, in node order.
    /// [`FeatureEncoder::grow`] adds rows for them to an encoder.
    ///
    /// # Errors
    /// `frame` does not have a column, or the column has another type.
    pub fn learn_keys(mut self, frame: &Frame) -> Result<Self, ModelError> {
        let mut columns = HostColumns::new(frame, None, &self.decoder)?;
        let spec = self.spec()?;
        let growing = spec.parts.iter().filter(|p| grows(p.kind));
        self.keys.resize(growing.clone().count(), vec![]);
        for (part, keys) in growing.zip(&mut self.keys) {
            let mut known: std::collections::HashSet<i64> = keys.iter().copied().collect();
            keys.extend(columns.values(part.slot)?.0.into_iter().filter(|&k| known.insert(k)));
        }
        Ok(self)
    }

    /// Computes mean and standard deviation of the number attributes over the nodes `rows`. Pass the training nodes, so
    /// that no information of other nodes is used. Attributes that are constant on these nodes are shifted, not scaled.
    ///
    /// # Errors
    /// `rows` is empty or has an id out of range, `frame` does not have a column, or a number is NaN or infinite.
    pub fn fit_numbers(mut self, frame: &Frame, rows: &[u32]) -> Result<Self, ModelError> {
        if rows.is_empty() {
            return Err(ModelError::out_of_range("rows", "at least one node", "none"));
        }
        let columns = HostColumns::new(frame, Some(rows), &self.decoder)?;
        (self.means, self.deviations) = (vec![], vec![]);
        let spec = self.spec()?;
        for (first, count) in
            runs(&spec).into_iter().filter(|r| spec.parts[r.0].kind == FeatureKind::Number)
        {
            let values = columns.numbers(spec.parts[first].slot, count)?;
            if let Some(i) = values.iter().position(|v| !v.is_finite()) {
                let (attribute, node) = (spec.parts[first + i % count].attribute, rows[i / count]);
                return Err(ModelError::encoder(format!(
                    "attribute {attribute} of node {node}: expected a finite number, found {}; \
                     fill it in the table, or leave the node out of `rows`",
                    values[i]
                )));
            }
            for c in 0..count {
                let column = || values.iter().skip(c).step_by(count);
                let mean = column().sum::<f64>() / rows.len() as f64;
                let variance =
                    column().map(|v| (v - mean).powi(2)).sum::<f64>() / rows.len() as f64;
                self.means.push(mean as f32);
                self.deviations.push(variance.sqrt() as f32);
            }
        }
        Ok(self)
    }

    /// Initializes an encoder. Initial embeddings are uniform in `±sqrt(6 / (rows + dim))`, in growing tables in
    /// `±sqrt(6 / dim)`. Each table has a random stream ([`seeded`](crate::seeded)), keyed by row, or by key in growing
    /// tables, so that an embedding has the same initial value whenever its key is added.
    ///
    /// # Errors
    /// The decoder has no attributes, or statistics or keys have a wrong length.
    pub fn try_init(&self, device: &Device) -> Result<FeatureEncoder, ModelError> {
        let embedded = self.spec()?.parts.iter().filter(|p| p.kind != FeatureKind::Number).count();
        self.init_with((0..embedded).map(|_| next_stream(device)).collect(), device)
    }

    /// As [`try_init`](Self::try_init), with the random streams of the tables.
    fn init_with(
        &self,
        streams: Vec<Stream>,
        device: &Device,
    ) -> Result<FeatureEncoder, ModelError> {
        let spec = self.spec()?;
        if spec.width() == 0 {
            return Err(ModelError::out_of_range("attr_types", "at least one attribute", "none"));
        }
        let count =
            |of: &dyn Fn(FeatureKind) -> bool| spec.parts.iter().filter(|p| of(p.kind)).count();
        let (numbers, growing) = (count(&|k| k == FeatureKind::Number), count(&grows));
        let (means, deviations) = (self.means.len(), self.deviations.len());
        for (arg, actual) in [("means", means), ("deviations", deviations)] {
            if actual != 0 {
                let why = "one per number attribute, or none";
                ModelError::check_length(arg, why, numbers, actual)?;
            }
        }
        ModelError::check_length("deviations", "as many as means", means, deviations)?;
        if !self.keys.is_empty() {
            let why = "one list per growing embedding, or none";
            ModelError::check_length("keys", why, growing, self.keys.len())?;
        }
        let mut keys = self.keys.clone();
        keys.resize(growing, vec![]);
        let mut next = keys.iter();
        let embedded = || spec.parts.iter().filter(|p| p.kind != FeatureKind::Number);
        let table = |(part, &stream): (&burn_gnn_data::FeaturePart, &Stream)| {
            let dim = part.columns.len();
            let table = match part.kind {
                FeatureKind::Number => return None,
                FeatureKind::Embedding { rows } | FeatureKind::Bag { rows } => {
                    init::rows(stream, None, [rows, dim], rows as u64, device)
                }
                FeatureKind::Dynamic | FeatureKind::DynamicBag => {
                    let ids: Vec<u64> = next.next()?.iter().map(|&k| k as u64).collect();
                    // Random numbers are keyed by the keys, so that an embedding has the same initial value whenever
                    // its key is added. A growing table has no total number of rows.
                    init::rows(stream, Some(&ids), [ids.len(), dim], 0, device)
                }
            };
            let is_large = |from| grows(part.kind) || table.val().dims()[0] >= from;
            let sparse = self.sparse_from.is_some_and(is_large);
            Some((if sparse { table.set_require_grad(false) } else { table }, sparse))
        };
        let (tables, sparse) = embedded().zip(&streams).filter_map(table).unzip();
        let vector = |values: Vec<f32>| {
            let n = values.len();
            (n > 0).then(|| {
                Param::from_tensor(Tensor::from_data(TensorData::new(values, [n]), device))
                    .set_require_grad(false)
            })
        };
        let scale = self
            .deviations
            .iter()
            .map(|&d| if d > 0.0 && d.is_finite() { d.recip() } else { 1.0 })
            .collect();
        let index =
            |keys: &Vec<i64>| keys.iter().enumerate().map(|(i, &k)| (k, i as u32)).collect();
        let by_key = keys.iter().map(index).collect();
        let layout =
            Layout { config: Self { keys, ..self.clone() }, spec, keys: by_key, streams, sparse };
        Ok(FeatureEncoder {
            tables,
            mean: vector(self.means.clone()),
            scale: vector(scale),
            layout,
        })
    }
}

panicking_init!(FeatureEncoderConfig => FeatureEncoder);

fn grows(kind: FeatureKind) -> bool {
    matches!(kind, FeatureKind::Dynamic | FeatureKind::DynamicBag)
}

impl FeatureEncoder {
    /// Layout of the output; `Display` prints it.
    pub fn spec(&self) -> &FeatureSpec {
        &self.layout.spec
    }
    /// Output feature size.
    pub fn width(&self) -> usize {
        self.layout.spec.width()
    }
    /// Description of this encoder, with its current keys. Save it with the weights.
    pub fn config(&self) -> &FeatureEncoderConfig {
        &self.layout.config
    }

    /// Whether a table is sparse.
    pub(crate) fn is_sparse(&self, table: usize) -> bool {
        self.layout.sparse[table]
    }

    /// Reads the attributes of all nodes from a frame of [`Builder`](burn_gnn_data::Builder).
    ///
    /// # Errors
    /// `frame` does not have a column, the column has another type or number of attributes, or a bucket is out of range.
    pub fn input(&self, frame: &Frame) -> Result<EncoderInput, ModelError> {
        self.input_of(frame, None)
    }
    /// Reads the attributes of the nodes `ids`.
    ///
    /// # Errors
    /// As [`input`](Self::input), or an id is out of range.
    pub fn input_rows(&self, frame: &Frame, ids: &[u32]) -> Result<EncoderInput, ModelError> {
        self.input_of(frame, Some(ids))
    }

    fn input_of(&self, frame: &Frame, ids: Option<&[u32]>) -> Result<EncoderInput, ModelError> {
        let mut columns = HostColumns::new(frame, ids, &self.layout.config.decoder)?;
        let (rows, spec) = (columns.rows(), &self.layout.spec);
        let (mut parts, mut tables, mut growing) =
            (vec![], self.tables.iter(), self.layout.keys.iter());
        for (first, count) in runs(spec) {
            let part = &spec.parts[first];
            if part.kind == FeatureKind::Number {
                let device = frame.column(numbers_of(part.slot))?.device().clone();
                let data = TensorData::new(columns.numbers(part.slot, count)?, [rows, count]);
                parts.push(PartInput::Numbers(Tensor::from_data(data, &device)));
                continue;
            }
            let keys = if grows(part.kind) { growing.next() } else { None };
            let table = tables.next().map_or(0, |t| t.val().dims()[0]);
            parts.push(PartInput::Lookup(lookup(
                part.attribute,
                part.kind,
                table,
                keys,
                columns.values(part.slot)?,
                rows,
            )?));
        }
        Ok(EncoderInput { rows, parts })
    }

    /// Computes features `[rows, width]`. An unknown key of a growing embedding is skipped; if it is the only value of a
    /// node, the features are 0.
    ///
    /// Sparse tables get no gradient; see [`forward_rows`](Self::forward_rows).
    pub fn forward(&self, input: &EncoderInput) -> Tensor<2> {
        self.assemble(input, |_, relation, table| (relation.clone(), table))
    }

    /// Concatenates the features of all parts. `rows` selects the rows of a table and the relation that reads them.
    pub(crate) fn assemble(
        &self,
        input: &EncoderInput,
        mut rows: impl FnMut(usize, &Relation, Tensor<2>) -> (Relation, Tensor<2>),
    ) -> Tensor<2> {
        let (mut tables, mut at, mut out) =
            (self.tables.iter().map(|t| t.val()).enumerate(), 0, vec![]);
        let reduce = |(relation, table): (Relation, Tensor<2>)| {
            gspmm_copy(&relation, Side::Lhs, self.layout.config.combiner, table)
        };
        for part in &input.parts {
            out.push(match part {
                PartInput::Numbers(x) => {
                    let range = at..at + x.dims()[1];
                    at = range.end;
                    self.standardised(x.clone(), range)
                }
                PartInput::Lookup(relation) => match tables.next() {
                    Some((i, table)) => reduce(rows(i, relation, table)),
                    None => panic!("the input was made by another encoder: it has more than {} embedded attributes", self.tables.len()),
                },
            });
        }
        match out.as_slice() {
            [one] => one.clone(),
            // Not every backend can concatenate tensors without rows.
            [first, ..] if input.rows == 0 => no_rows(self.width(), first),
            _ => Tensor::cat(out, 1),
        }
    }

    fn standardised(&self, x: Tensor<2>, columns: std::ops::Range<usize>) -> Tensor<2> {
        // Numbers are on the device without autodiff, and are concatenated with tracked embeddings.
        let tracked = self.tables.first().map(|t| t.val());
        let x = match &tracked {
            Some(table) => {
                let x = x.cast(FloatDType::from(table.dtype()));
                if table.is_autodiff() { x.autodiff() } else { x }
            }
            None => x,
        };
        let (Some(mean), Some(scale)) = (&self.mean, &self.scale) else { return x };
        if x.dims()[0] == 0 {
            return x;
        }
        let row = |p: &Param<Tensor<1>>| {
            let row = p
                .val()
                .without_autodiff()
                .slice([columns.clone()])
                .cast(FloatDType::from(x.dtype()))
                .unsqueeze::<2>();
            if x.is_autodiff() { row.autodiff() } else { row }
        };
        (x.clone() - row(mean)) * row(scale)
    }

    /// Adds embeddings for the new keys of `config` ([`FeatureEncoderConfig::learn_keys`] on [`config`](Self::config)).
    /// Existing embeddings and statistics do not change. New embeddings have the initial values of
    /// [`FeatureEncoderConfig::init`] with these keys, even in a later process that initializes the encoder in a
    /// [`seeded`](crate::seeded) scope of the same seed.
    ///
    /// # Errors
    /// The keys of `config` do not start with those of this encoder, or `config` describes another layout.
    pub fn grow(self, config: &FeatureEncoderConfig, device: &Device) -> Result<Self, ModelError> {
        let other = || {
            ModelError::encoder(
                "`config` must have the layout and start with the keys of this encoder; start from its `config()`",
            )
        };
        if config.spec()? != self.layout.spec {
            return Err(other());
        }
        let mut new = config.init_with(self.layout.streams.clone(), device)?;
        let starts = |(old, new): (&Vec<i64>, &Vec<i64>)| new.starts_with(old);
        if !self.layout.config.keys.iter().zip(&new.layout.config.keys).all(starts) {
            return Err(other());
        }
        for ((new, old), &sparse) in new.tables.iter_mut().zip(self.tables).zip(&new.layout.sparse)
        {
            let old = old.val();
            // New rows have the default precision of the device, which may differ from that of the encoder.
            let fresh = new.val().cast(FloatDType::from(old.dtype()));
            let (known, all) = (old.dims()[0], fresh.dims()[0]);
            let rows = if known == 0 {
                fresh
            } else if known == all {
                old
            } else {
                let tracked = fresh.is_autodiff();
                let joint = Tensor::cat(
                    vec![old.without_autodiff(), fresh.without_autodiff().slice_dim(0, known..all)],
                    0,
                );
                if tracked { joint.autodiff() } else { joint }
            };
            let param = Param::from_tensor(rows.detach());
            *new = if sparse { param.set_require_grad(false) } else { param };
        }
        (new.mean, new.scale) = (self.mean, self.scale);
        Ok(new)
    }
}

/// Creates a tensor without rows on the device of a table. It is created from data, because Burn 0.22.1 fuses `zeros` of
/// length 0 with neighbouring operations and then launches none of them.
pub(crate) fn no_rows(dim: usize, like: &Tensor<2>) -> Tensor<2> {
    let dtype = like.dtype();
    Tensor::from_data(TensorData::full_dtype([0, dim], 0.0, dtype), (&like.device(), dtype))
}
