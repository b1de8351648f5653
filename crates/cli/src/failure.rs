//! Errors of the program, with their exit codes.

use std::any::Any;
use std::process::ExitCode;

use burn_gnn::data::DataError;
use burn_gnn::graph::GraphError;
use burn_gnn::models::ModelError;
use serde::Serialize;

/// What went wrong, which determines the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// The command line.
    Usage,
    /// Files, tables, settings.
    Data,
    /// Options of models, training.
    Model,
    /// `verify` found something.
    Leak,
    /// An error of this program.
    Internal,
    /// The reader of the output has ended, as in `burn-gnn inspect FOLDER | head`. Not an error.
    Closed,
}

/// An error, in one line.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    pub(crate) message: String,
}

impl Failure {
    /// An error. Lines of the message are joined.
    pub(crate) fn new(kind: Kind, message: impl AsRef<str>) -> Self {
        let mut joined = String::new();
        for line in message.as_ref().lines().map(str::trim).filter(|line| !line.is_empty()) {
            joined += match joined.chars().last() {
                None => "",
                Some(':' | ';' | ',') => " ",
                Some(_) => "; ",
            };
            joined += line;
        }
        Self { kind, message: joined }
    }

    /// A panic.
    pub(crate) fn internal(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
        let message = format!(
            "{}; this is an error of burn-gnn: run it again with RUST_BACKTRACE=1 and report the output with that of `burn-gnn --version`",
            text.unwrap_or("unknown panic")
        );
        Self::new(Kind::Internal, message)
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self.kind {
            Kind::Closed => ExitCode::SUCCESS,
            Kind::Data | Kind::Model | Kind::Internal => ExitCode::from(1),
            Kind::Usage => ExitCode::from(2),
            Kind::Leak => ExitCode::from(3),
        }
    }
}

impl From<DataError> for Failure {
    fn from(e: DataError) -> Self {
        Self::new(Kind::Data, e.to_string())
    }
}

impl From<GraphError> for Failure {
    fn from(e: GraphError) -> Self {
        Self::new(Kind::Data, e.to_string())
    }
}

impl From<ModelError> for Failure {
    fn from(e: ModelError) -> Self {
        let kind = if matches!(e, ModelError::Data(_)) { Kind::Data } else { Kind::Model };
        Self::new(kind, e.to_string())
    }
}
