//! Converts stored values by the logical type of a column, or by the converted type of older writers.

use parquet::basic::{ConvertedType, LogicalType, TimeUnit, Type as Physical};
use parquet::data_type::Int96;
use parquet::schema::types::ColumnDescriptor;

use super::cells::Values;
use crate::files::Expected;

/// The conversion of the stored values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueType {
    Bool,
    /// Signed numbers; dates and times in the unit of their column.
    Int,
    /// Unsigned numbers of this many bits.
    Unsigned(u32),
    /// Whole numbers divided by this power of ten.
    Decimal(u32),
    F16,
    F32,
    F64,
    Text,
    /// Nanoseconds of a day and a Julian day, of old Spark and Impala.
    Int96,
}

/// The logical or converted type of a column.
enum Annotation {
    None,
    Text,
    Integer {
        bits: i8,
        signed: bool,
    },
    Decimal(i32),
    F16,
    /// A type that is not supported, with a remedy.
    Other(&'static str),
}

/// Most digits of decimals in 16 bytes.
const MOST_DIGITS: u32 = 38;
const CAST: &str = "cast it to int64, float64 or text";

impl ValueType {
    /// The error is the expected value.
    pub(super) fn of(column: &ColumnDescriptor) -> Result<Self, Expected> {
        let expected = |remedy| Err(Expected::from("numbers, dates, times or texts").or(remedy));
        Ok(match (column.physical_type(), annotation(column)) {
            (_, Annotation::Other(remedy)) => return expected(remedy),
            (Physical::BOOLEAN, Annotation::None) => Self::Bool,
            (
                Physical::INT32 | Physical::INT64,
                Annotation::None | Annotation::Integer { signed: true, .. },
            ) => Self::Int,
            (Physical::INT32, Annotation::Integer { bits: bits @ (8 | 16 | 32), .. })
            | (Physical::INT64, Annotation::Integer { bits: bits @ 64, .. }) => {
                Self::Unsigned(u32::from(bits.unsigned_abs()))
            }
            (
                Physical::INT32
                | Physical::INT64
                | Physical::BYTE_ARRAY
                | Physical::FIXED_LEN_BYTE_ARRAY,
                Annotation::Decimal(scale),
            ) => match u32::try_from(scale) {
                Ok(scale) if scale <= MOST_DIGITS => Self::Decimal(scale),
                _ => return expected("cast it to float64"),
            },
            (Physical::INT96, Annotation::None) => Self::Int96,
            (Physical::FLOAT, Annotation::None) => Self::F32,
            (Physical::DOUBLE, Annotation::None) => Self::F64,
            (Physical::BYTE_ARRAY, Annotation::None | Annotation::Text) => Self::Text,
            (Physical::FIXED_LEN_BYTE_ARRAY, Annotation::F16) => Self::F16,
            _ => return expected(CAST),
        })
    }

    /// The values of a column without rows.
    pub(super) fn no_values(self) -> Values {
        match self {
            Self::Bool | Self::Int | Self::Unsigned(_) | Self::Decimal(0) | Self::Int96 => {
                Values::Int(vec![])
            }
            Self::Decimal(_) | Self::F64 => Values::F64(vec![]),
            Self::F16 | Self::F32 => Values::F32(vec![]),
            Self::Text => Values::Text(vec![]),
        }
    }
}

fn annotation(column: &ColumnDescriptor) -> Annotation {
    let integer = |bits, signed| Annotation::Integer { bits, signed };
    let Some(logical) = column.logical_type_ref() else {
        return match column.converted_type() {
            ConvertedType::UINT_8 => integer(8, false),
            ConvertedType::UINT_16 => integer(16, false),
            ConvertedType::UINT_32 => integer(32, false),
            ConvertedType::UINT_64 => integer(64, false),
            ConvertedType::DECIMAL => Annotation::Decimal(column.type_scale()),
            ConvertedType::UTF8
            | ConvertedType::ENUM
            | ConvertedType::JSON
            | ConvertedType::BSON => Annotation::Text,
            ConvertedType::INTERVAL => Annotation::Other("cast it to int64, such as milliseconds"),
            _ => Annotation::None,
        };
    };
    match logical {
        LogicalType::Integer(t) => integer(t.bit_width, t.is_signed),
        LogicalType::Decimal(t) => Annotation::Decimal(t.scale),
        LogicalType::String | LogicalType::Enum | LogicalType::Json | LogicalType::Bson => {
            Annotation::Text
        }
        LogicalType::Float16 => Annotation::F16,
        // `Unknown`: a column of nulls.
        LogicalType::Date
        | LogicalType::Time(_)
        | LogicalType::Timestamp(_)
        | LogicalType::Unknown => Annotation::None,
        LogicalType::Uuid => Annotation::Other("cast it to text"),
        _ => Annotation::Other(CAST),
    }
}

/// Nanoseconds of the unit of a column of dates or timestamps; `None` for another column.
pub(super) fn time_unit(column: &ColumnDescriptor) -> Option<i64> {
    const DAY: i64 = 86_400_000_000_000;
    match (column.logical_type_ref(), column.converted_type(), column.physical_type()) {
        (Some(LogicalType::Date), ..) | (None, ConvertedType::DATE, _) => Some(DAY),
        (Some(LogicalType::Timestamp(t)), ..) => Some(match t.unit {
            TimeUnit::MILLIS => 1_000_000,
            TimeUnit::MICROS => 1000,
            TimeUnit::NANOS => 1,
        }),
        (None, ConvertedType::TIMESTAMP_MILLIS, _) => Some(1_000_000),
        (None, ConvertedType::TIMESTAMP_MICROS, _) => Some(1000),
        (None, _, Physical::INT96) => Some(1),
        _ => None,
    }
}

/// The type of a column in errors, such as `decimal(5, 2) in INT32`.
pub(super) fn type_name(column: &ColumnDescriptor) -> String {
    let physical = match column.physical_type() {
        Physical::FIXED_LEN_BYTE_ARRAY => format!("{} bytes", column.type_length()),
        other => other.to_string(),
    };
    let annotated = match column.logical_type_ref() {
        Some(LogicalType::Integer(t)) => {
            format!("{}int{}", if t.is_signed { "" } else { "u" }, t.bit_width)
        }
        Some(LogicalType::Decimal(t)) => format!("decimal({}, {})", t.precision, t.scale),
        Some(LogicalType::Time(_)) => "time".into(),
        Some(LogicalType::Timestamp(_)) => "timestamp".into(),
        Some(LogicalType::Variant(_)) => "variant".into(),
        Some(LogicalType::Geometry(_)) => "geometry".into(),
        Some(LogicalType::Geography(_)) => "geography".into(),
        Some(other) => format!("{other:?}").to_lowercase(),
        None => match column.converted_type() {
            ConvertedType::NONE => return physical,
            ConvertedType::DECIMAL => {
                format!("decimal({}, {})", column.type_precision(), column.type_scale())
            }
            other => other.to_string().to_lowercase(),
        },
    };
    format!("{annotated} in {physical}")
}

/// Converts unsigned numbers; the error is the expected value.
pub(super) fn unsigned_32(values: Vec<i32>, bits: u32) -> Result<Values, Expected> {
    let wide = |v: i32| i64::from(v.cast_unsigned());
    match values.iter().find(|&&v| wide(v) >> bits != 0) {
        Some(_) => Err(format!("numbers of {bits} bits").into()),
        None => Ok(Values::Int(values.into_iter().map(wide).collect())),
    }
}

/// Converts times to nanoseconds since 1970; the error is the expected value.
pub(super) fn nanoseconds(values: &[Int96]) -> Result<Values, Expected> {
    /// Julian day of the first of January 1970.
    const EPOCH: i128 = 2_440_588;
    const DAY: i128 = 86_400_000_000_000;
    let one = |v: &Int96| {
        let [low, high, day] = *v.data() else { return None };
        let of_day = i128::from(high) << 32 | i128::from(low);
        i64::try_from((i128::from(day) - EPOCH) * DAY + of_day).ok()
    };
    let values: Option<_> = values.iter().map(one).collect();
    let expected = || Expected::from("times in nanoseconds of 64 bits (years 1678 to 2261)");
    values.map(Values::Int).ok_or_else(|| expected().or("cast it to timestamps in microseconds"))
}

/// Parses a number in two's complement, most significant byte first.
pub(super) fn big_endian(bytes: &[u8]) -> Result<i128, Expected> {
    let negative = bytes.first().is_some_and(|&b| b >= 0x80);
    let sign = if negative { 0xff } else { 0 };
    let (more, last) = bytes.split_at(bytes.len().saturating_sub(16));
    let mut all = [sign; 16];
    all[16 - last.len()..].copy_from_slice(last);
    let value = i128::from_be_bytes(all);
    if more.iter().all(|&b| b == sign) && (more.is_empty() || (value < 0) == negative) {
        Ok(value)
    } else {
        let expected = format!("decimals of at most {MOST_DIGITS} digits");
        Err(Expected::from(expected).or("cast it to float64"))
    }
}

/// Converts decimals: to whole numbers if the scale is 0, otherwise to the nearest f64.
pub(super) fn decimals(
    values: impl Iterator<Item = Result<i128, Expected>>,
    scale: u32,
) -> Result<Values, Expected> {
    if scale == 0 {
        let whole = |v: Result<i128, Expected>| {
            i64::try_from(v?).map_err(|_| {
                Expected::from("whole numbers that fit in 64 bits").or("cast it to float64")
            })
        };
        return values.map(whole).collect::<Result<_, _>>().map(Values::Int);
    }
    let power = 10u128.pow(scale);
    let float = |v: Result<i128, Expected>| {
        let v = v?;
        // Both operands are exact, so only the quotient is rounded.
        if v.unsigned_abs() < 1 << f64::MANTISSA_DIGITS && scale <= 22 {
            return Ok(v as f64 / power as f64);
        }
        format!("{v}e-{scale}").parse().map_err(|_| "decimals".into())
    };
    values.map(float).collect::<Result<_, _>>().map(Values::F64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_the_nearest_floats() {
        let read = |v: i128, scale| decimals(std::iter::once(Ok(v)), scale);
        let float = |v, scale| match read(v, scale).unwrap() {
            Values::F64(v) => v[0],
            other => panic!("{other:?}"),
        };
        assert_eq!((float(5, 1), float(-125, 2), float(1, 4)), (0.5, -1.25, 1e-4));
        assert_eq!(float(12_345_678_901_234_567_890_123, 3), 12_345_678_901_234_567_890.123);
        assert_eq!(float(i128::MAX, 38), 1.701_411_834_604_692_3);
        assert!(matches!(read(-7, 0).unwrap(), Values::Int(v) if v == [-7]));
        assert!(read(1 << 64, 0).unwrap_err().what.contains("fit in 64 bits"));
    }

    #[test]
    fn bytes_of_decimals() {
        for (bytes, value) in [
            (&[][..], Some(0)),
            (&[0x7d], Some(125)),
            (&[0xff], Some(-1)),
            (&[0x80, 0], Some(-32768)),
            (&[0xff; 20], Some(-1)),
            (&[0, 0, 1, 0], Some(256)),
        ] {
            assert_eq!(big_endian(bytes).ok(), value, "{bytes:?}");
        }
        let far = [&[0][..], &[0xff; 16]].concat();
        assert!(big_endian(&far).unwrap_err().what.contains("at most 38 digits"));
    }

    #[test]
    fn times_in_96_bits() {
        let of = |day: u32, ns: u64| Int96::from(vec![ns as u32, (ns >> 32) as u32, day]);
        let read = |v| match nanoseconds(&[v]) {
            Ok(Values::Int(v)) => Ok(v[0]),
            Ok(other) => panic!("{other:?}"),
            Err(e) => Err(e.what),
        };
        assert_eq!(read(of(2_440_588, 5)).unwrap(), 5);
        assert_eq!(read(of(2_440_587, 86_399_999_999_999)).unwrap(), -1);
        assert_eq!(read(of(2_440_590, 3_600_000_000_000)).unwrap(), 176_400_000_000_000);
        assert!(read(of(5_373_484, 0)).unwrap_err().contains("years 1678 to 2261"));
    }
}
