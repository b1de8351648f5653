//! Tests of CSV dialects: rows of published files, and random texts.

use burn::tensor::Device;
use burn_gnn_files::DataError;
use burn_gnn_graph::Ids;
use proptest::prelude::*;

use super::Files;
use crate::{
    AttrType, Builder, Csv, DOUBLE_ATTRS, Decoder, Encoding, ReadOptions, TimeUnit, read_edges,
    read_nodes, read_nodes_with,
};
use AttrType::{Float, Int, Text};

fn texts(ids: &Ids) -> Vec<&str> {
    if let Ids::Text(ids) = ids { ids.iter().collect() } else { panic!("numbers") }
}

/// `soc-sign-bitcoinotc.csv`: source, target, rating, seconds with a fraction; no header.
#[test]
fn bitcoin_otc() {
    let files = Files::new();
    let rows = "6,2,4,1289241911.72836\n6,5,2,1289241941.53378\n1,15,1,1289243140.39049\n";
    let path = files.put("soc-sign-bitcoinotc.csv", rows);
    let csv = Csv::default()
        .with_columns(["src_id", "dst_id", "rating", "time"])
        .with_weight("rating")
        .with_timestamp("time");
    let e = read_edges(&path, &Decoder::new().csv(csv.clone())).unwrap_err().to_string();
    assert!(
        e.contains(
            ":1:4: expected an int64 (`timestamp`), got \"1289241911.72836\"; `Csv::with_time_unit`"
        ),
        "{e}"
    );
    let decoder = Decoder::new().csv(csv.clone().with_time_unit(TimeUnit::Microseconds));
    let t = read_edges(&path, &decoder).unwrap();
    assert_eq!((t.src, t.dst), (Ids::Int(vec![6, 6, 1]), Ids::Int(vec![2, 5, 15])));
    assert_eq!(t.columns.weights.unwrap(), [4.0, 2.0, 1.0]);
    assert_eq!(
        t.columns.timestamps.unwrap(),
        [1_289_241_911_728_360, 1_289_241_941_533_780, 1_289_243_140_390_490]
    );
    let seconds = Decoder::new().csv(csv.with_time_unit(TimeUnit::Seconds));
    let e = read_edges(&path, &seconds).unwrap_err().to_string();
    assert!(e.contains("a multiple of the unit") && e.contains("`TimeUnit::Microseconds`"), "{e}");
}

/// `ratings.dat` and `movies.dat` of MovieLens 1M: `::`, no header, and titles in Latin-1.
#[test]
fn movie_lens() {
    let files = Files::new();
    let ratings = "1::1193::5::978300760\n1::661::3::978302109\n";
    let csv = Csv::default()
        .with_delimiter("::")
        .with_columns(["user", "movie", "stars", "time"])
        .with_endpoints("user", "movie")
        .with_timestamp("time");
    let t = read_edges(files.put("ratings.dat", ratings), &Decoder::new().csv(csv)).unwrap();
    assert_eq!((t.src, t.dst), (Ids::Int(vec![1, 1]), Ids::Int(vec![1193, 661])));
    assert_eq!(t.columns.timestamps.unwrap(), [978_300_760, 978_302_109]);

    let movies = b"1::Toy Story (1995)::Animation|Children's|Comedy\n73::Mis\xe9rables, Les (1995)::Drama|Musical\n";
    let csv = Csv::new(["title"]).with_delimiter("::").with_columns(["id", "title", "genres"]);
    let decoder = Decoder::new().with_attributes([Text]);
    let path = files.put("movies.dat", movies);
    let e = read_nodes(&path, &decoder.clone().csv(csv.clone())).unwrap_err().to_string();
    assert!(
        e.contains(":2:2: expected UTF-8 text (`title`)") && e.contains("Encoding::Latin1"),
        "{e}"
    );
    let t = read_nodes(&path, &decoder.csv(csv.with_encoding(Encoding::Latin1))).unwrap();
    assert_eq!(
        t.columns.attributes.texts[0].iter().collect::<Vec<_>>(),
        ["Toy Story (1995)", "Misérables, Les (1995)"]
    );
}

/// `airports.dat` and `routes.dat` of OpenFlights: no header, `\N` for missing values, more columns than names.
#[test]
fn open_flights() {
    let files = Files::new();
    let airports = concat!(
        "1,\"Goroka Airport\",\"Goroka\",\"Papua New Guinea\",\"GKA\",\"AYGA\",-6.081689834590001,145.391998291,5282,10,\"U\",\"Pacific/Port_Moresby\",\"airport\",\"OurAirports\"\n",
        "11,\"Akureyri Airport\",\"Akureyri\",\"Iceland\",\\N,\"BIAR\",65.66000366210938,-18.07270050048828,6,\\N,\"N\",\\N,\"airport\",\"OurAirports\"\n",
    );
    let csv = Csv::new(["iata", "lat", "hours"])
        .with_columns([
            "id", "name", "city", "country", "iata", "icao", "lat", "lon", "alt", "hours",
        ])
        .with_missing(["\\N"]);
    let decoder = Decoder::new().with_attributes([Text, Float, Float]).empty_as_zero();
    let path = files.put("airports.dat", airports);
    let t = read_nodes(&path, &decoder.clone().csv(csv.clone())).unwrap();
    assert_eq!(t.columns.attributes.texts[0].iter().collect::<Vec<_>>(), ["GKA", ""]);
    assert_eq!(t.columns.attributes.floats, [-6.081_69, 10.0, 65.66, 0.0]);
    // Where the backslash is an escape too, the marker stays one.
    let escaped = decoder.csv(csv.with_escape('\\'));
    assert_eq!(read_nodes(&path, &escaped).unwrap().columns.attributes, t.columns.attributes);

    let routes = "2B,410,AER,2965,KZN,2990,,0,CR2\n2B,410,ASF,2966,KZN,\\N,,0,CR2\n";
    let columns = ["airline", "airline_id", "from", "from_id", "to", "to_id"];
    let csv = Csv::default().with_columns(columns).with_missing(["\\N"]);
    let by_code = Decoder::new().csv(csv.clone().with_endpoints("from", "to").with_text_ids());
    let path = files.put("routes.dat", routes);
    let t = read_edges(&path, &by_code).unwrap();
    assert_eq!((texts(&t.src), texts(&t.dst)), (vec!["AER", "ASF"], vec!["KZN", "KZN"]));
    // An id that is missing is an error, not the node 0.
    let e = read_edges(
        &path,
        &Decoder::new().empty_as_zero().csv(csv.with_endpoints("from_id", "to_id")),
    );
    assert!(e.unwrap_err().to_string().contains("routes.dat:2:6: expected an int64 (`dst_id`)"));
}

/// ICEWS: tabs, texts, dates.
#[test]
fn icews() {
    let files = Files::new();
    let rows = "Head of Government (Japan)\tMake statement\tSouth Korea\t2014-01-01\nIran\tConsult\tIraq\t2014-12-31\n";
    let csv = Csv::default()
        .with_delimiter('\t')
        .without_quotes()
        .with_columns(["src_id", "event", "dst_id", "date"])
        .with_text_ids()
        .with_label("event")
        .with_timestamp("date");
    let path = files.put("icews.txt", rows);
    let read = |unit| {
        let decoder = Decoder::new().csv(csv.clone().with_time_unit(unit)).text_labels();
        read_edges(&path, &decoder).unwrap().columns
    };
    assert_eq!(read(TimeUnit::Days).timestamps.unwrap(), [16_071, 16_435]);
    let columns = read(TimeUnit::Seconds);
    assert_eq!(columns.timestamps.unwrap(), [1_388_534_400, 1_419_984_000]);
    assert_eq!(columns.labels.unwrap(), [1, 0]);
}

/// Missing labels and decimal commas as pandas writes them.
#[test]
fn missing_labels_and_decimal_commas() {
    let files = Files::new();
    let path = files.put(
        "p.csv",
        "# made by hand\nid;x;y\n1;1,5;toys\n2;-2,25e1;NA\n3;\"NA\";books\n# end\n4;7;NaN\n",
    );
    let csv = Csv::new(["x"]).with_delimiter(';').with_label("y").with_comment("#");
    let decoder =
        |csv: Csv| Decoder::new().with_attributes([Float]).empty_as_zero().csv(csv).text_labels();
    let e = read_nodes(&path, &decoder(csv.clone())).unwrap_err().to_string();
    assert!(
        e.contains("p.csv:3:2: expected a float (`x`), got \"1,5\"; `Csv::with_decimal(',')`"),
        "{e}"
    );
    let csv = csv.with_decimal(',').with_missing(["NA", "NaN"]);
    let t = read_nodes(&path, &decoder(csv.clone())).unwrap();
    assert_eq!(t.columns.attributes.floats, [1.5, -22.5, 0.0, 7.0]);
    assert_eq!(t.columns.labels.unwrap(), [1, -1, 0, -1]);
    // A point is no decimal comma.
    let path = files.put("q.csv", "id;x;y\n1;1.5;a\n");
    let e = read_nodes(path, &decoder(csv)).unwrap_err().to_string();
    assert!(e.contains("q.csv:2:2: expected a float"), "{e}");
}

/// A quote that is not closed is an error at its position, even in a column that is not read. So are quotes around a part
/// of a field.
#[test]
fn invalid_quotes_are_errors() {
    let files = Files::new();
    let names = Decoder::new().csv(Csv::default());
    let rows = |n: usize| (0..n).map(|i| format!("{i},x{i}\n")).collect::<String>();
    let mut text = format!("id,name\n{}", rows(5_000));
    text += "5000,\"b\n";
    text += &(5_001..10_000).map(|i| format!("{i},x{i}\n")).collect::<String>();
    for (decoder, text, part) in [
        (
            &names,
            text.clone(),
            "p.csv:5002:2: expected a closing quote for the field that begins here, got \"\\\"b\"; `Csv::without_quotes`",
        ),
        (
            &names,
            "id,a\n1,x\n2,\"b\n3,c\n4,\"d\"\n".into(),
            "p.csv:3:2: expected a delimiter or a line end after the closing quote",
        ),
        (&names, "id,\"a\n1,x\n".into(), "p.csv:1:2: expected a closing quote"),
        (
            &names,
            "id,a\n1,\"x\ny\"\n2,\"b \\\"c\\\" d\"\n".into(),
            "p.csv:4:2: expected a delimiter or a line end",
        ),
    ] {
        let e = read_nodes(files.put("p.csv", &text), decoder).unwrap_err();
        assert!(matches!(e, DataError::Table { .. }) && e.to_string().contains(part), "{e}");
    }
    // Rows before it are validated; nothing is known about the rows after it.
    let several = ReadOptions::new().with_max_problems(9);
    let e = read_nodes_with(files.put("p.csv", "id,a\nx,1\n2,\"b\n3,c\n"), &names, &several);
    assert!(matches!(&e, Err(DataError::Problems { problems }) if problems.len() == 2), "{e:?}");
    // Both dialects that such files have.
    let without = Decoder::new().csv(Csv::default().without_quotes());
    assert_eq!(read_nodes(files.put("p.csv", &text), &without).unwrap().ids.len(), 10_000);
    let spark = Csv::new(["text"]).with_escape('\\');
    let spark = Decoder::new().with_attributes([Text]).csv(spark);
    let t = read_nodes(files.put("s.csv", "id,text\n1,\"a \\\"b\\\", c\"\n2,\"d\\\\\"\n"), &spark)
        .unwrap();
    assert_eq!(t.columns.attributes.texts[0].iter().collect::<Vec<_>>(), ["a \"b\", c", "d\\"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Texts of the crate `csv` are read without loss, in any dialect, over many blocks and with any number of threads.
    #[test]
    fn no_row_is_lost(
        some in prop::collection::vec("[a\",;\\\\\n\r# ]{0,9}", 1..60),
        delimiter in prop::sample::select(vec![',', ';', '\t']),
        escape: bool,
        copies in 1usize..3_000,
    ) {
        let rows: Vec<&String> = some.iter().cycle().take(copies.max(some.len())).collect();
        let mut out = ::csv::WriterBuilder::new()
            .delimiter(delimiter as u8)
            .double_quote(!escape)
            .escape(b'\\')
            .quote_style(if escape { ::csv::QuoteStyle::Always } else { ::csv::QuoteStyle::Necessary })
            .from_writer(vec![]);
        out.write_record(["id", "text", "unread"]).unwrap();
        for (i, row) in rows.iter().enumerate() {
            // Without doubled quotes the writer escapes quotes alone.
            let row = if escape { row.replace('\\', "") } else { row.to_string() };
            out.write_record([&i.to_string(), &row, "x"]).unwrap();
        }
        let files = Files::new();
        let path = files.put("w.csv", out.into_inner().unwrap());
        let mut csv = Csv::new(["text"]).with_delimiter(delimiter);
        if escape {
            csv = csv.with_escape('\\');
        }
        let decoder = Decoder::new().with_attributes([Text]).csv(csv);
        let t = read_nodes(&path, &decoder).unwrap();
        prop_assert_eq!(t.ids.ids(), &Ids::Int((0..rows.len() as i64).collect()));
        for (found, row) in t.columns.attributes.texts[0].iter().zip(&rows) {
            let row = if escape { row.replace('\\', "") } else { row.to_string() };
            prop_assert_eq!(found, row);
        }
    }
}

proptest! {
    /// The parser of common rows and the general parser return the same values. A marker of missing values that is a number
    /// disables the former.
    #[test]
    fn common_rows_equal_other_rows(
        rows in prop::collection::vec(
            prop::collection::vec(
                prop::sample::select(vec![
                    "1", "-5", "007", "12345678", "1.5", "-0", "1e2", "2.25E-3", "123456789012345678", "9223372036854775807",
                    "16777217", "1e-60", "", " 3", "4 ", "+6", "x", "\"7\"", "\"8,\"", ".5", "5.", "nan", "-",
                ]),
                6,
            ),
            1..5,
        ),
        crlf: bool,
        simple in 0usize..6,
    ) {
        let files = Files::new();
        let end = if crlf { "\r\n" } else { "\n" };
        let mut text = format!("a,id,w,b,y,c{end}");
        for (i, row) in rows.iter().enumerate() {
            // Most rows are usual ones but for a cell.
            let cells: Vec<&str> = (0..6).map(|j| if j == simple || i % 3 == 2 { row[j] } else { "1" }).collect();
            text += &cells.join(",");
            text += end;
        }
        let path = files.put("p.csv", &text);
        let decoder = |csv: Csv| Decoder::new().with_attributes([Text, Float, Int]).csv(csv);
        let csv = Csv::new(["c", "a", "b"]).with_weight("w").with_label("y");
        let read = |csv: Csv| {
            let options = ReadOptions::new().with_duplicates(crate::Duplicates::First).with_max_problems(9);
            read_nodes_with(&path, &decoder(csv), &options)
                .map(|t| format!("{:?} {:?}", t.ids.ids(), t.columns))
                .map_err(|e| e.to_string())
        };
        prop_assert_eq!(read(csv.clone()), read(csv.with_missing(["+-+-"])), "{}", text);
    }
}

/// Contradictory options, and rows that do not match the options.
#[test]
fn contradictory_dialects_are_errors() {
    let files = Files::new();
    let path = files.put("p.csv", "a\nb,c\n1,2\n3,4\n");
    let refused = |csv: Csv| read_nodes(&path, &Decoder::new().csv(csv)).unwrap_err().to_string();
    for (csv, part) in [
        (
            Csv::default().with_delimiter(""),
            "`csv.delimiter`: expected a text without line ends that is not empty, got \"\"",
        ),
        (Csv::default().with_quote('x'), "`csv.quote`: expected an ASCII mark, got 'x'"),
        (
            Csv::default().with_escape('"'),
            "`csv.escape`: expected quote, escape, decimal and delimiter that differ",
        ),
        (Csv::default().with_decimal(','), "`csv.decimal`: expected quote, escape"),
        (Csv::default().with_comment(""), "`csv.comment`"),
        (
            Csv::default().with_columns(["id", "b"]),
            "p.csv:1: expected 2 fields or more, not 1, got \"a\"",
        ),
        (
            Csv::default().with_columns(["id", "b", "c"]).with_skipped_lines(1),
            "p.csv:2: expected 3 fields or more, not 2, got \"b,c\"",
        ),
        (Csv::default().with_columns(["id"]).with_skipped_lines(1), "p.csv:2:1: expected an int64"),
    ] {
        let e = refused(csv);
        assert!(e.contains(part), "expected {part} in {e}");
    }
    // Lines are counted from the start of the file.
    let two = Csv::new(["c"]).with_id("b").with_skipped_lines(1);
    let decoder = Decoder::new().with_attributes([Int]);
    let t = read_nodes(&path, &decoder.clone().csv(two.clone())).unwrap();
    assert_eq!(t.columns.attributes.ints, [2, 4]);
    let path = files.put("q.csv", "a\r\nb,c\r\n1,2\r\n1,4\r\nx,5\r\n");
    let e = read_nodes(&path, &decoder.clone().csv(two.clone())).unwrap_err().to_string();
    assert!(e.contains("q.csv:5:1:"), "{e}");
    let path = files.put("q.csv", "a\r\nb,c\r\n1,2\r\n1,4\r\n");
    let e = read_nodes(&path, &decoder.csv(two)).unwrap_err().to_string();
    assert!(e.contains("q.csv:4:1:") && e.contains("q.csv:3 has it"), "{e}");
    // The description has them all.
    let csv = Csv::new(["x"])
        .with_delimiter("::")
        .with_columns(["id", "x"])
        .with_skipped_lines(2)
        .with_comment("#")
        .without_quotes()
        .with_escape('\\')
        .with_decimal(',')
        .with_missing(["NA"])
        .with_encoding(Encoding::Windows1252)
        .with_time_unit(TimeUnit::Days);
    let json = serde_json::to_string(&csv).unwrap();
    assert_eq!(serde_json::from_str::<Csv>(&json).unwrap(), csv, "{json}");
}

/// Weights and attributes that f32 cannot represent.
#[test]
fn numbers_that_f32_cannot_represent() {
    let files = Files::new();
    let csv = Csv::new(["x"]).with_weight("w");
    let decoder = Decoder::new().with_attributes([Float]).csv(csv);
    let table = Decoder::new().weighted().with_attributes([Float]);
    for (number, near) in [
        ("1e300", f32::INFINITY),
        ("1e-60", 0.0),
        ("16777217", 16_777_216.0),
        ("-16777217.0", -16_777_216.0),
    ] {
        for (column, text, line) in [
            (
                2,
                format!("id,w,x\n1,{number},0.1\n"),
                format!("id:int64\tw:float\tx:string\n1\t{number}\t0.1\n"),
            ),
            (
                3,
                format!("id,w,x\n1,0.1,{number}\n"),
                format!("id:int64\tw:float\tx:string\n1\t0.1\t{number}\n"),
            ),
        ] {
            for (path, decoder) in
                [(files.put("p.csv", &text), &decoder), (files.put("p", &line), &table)]
            {
                let e = read_nodes(&path, decoder).unwrap_err().to_string();
                let part = format!(":2:{column}: expected a number that f32 can represent");
                assert!(e.contains(&part) && e.contains("`Decoder::round_floats`"), "{e}");
                let rounding =
                    Decoder { rounded: Default::default(), ..decoder.clone() }.round_floats();
                let t = read_nodes(&path, &rounding).unwrap().columns;
                assert_eq!(rounding.rounded.get(), 1);
                let found = [t.weights.unwrap()[0], t.attributes.floats[0]];
                assert_eq!(found[column - 2], near);
                assert_eq!(found[3 - column], 0.1);
            }
        }
    }
}

/// `narrow.parquet` was written by pyarrow 26: int64 `id` 1, 2; float64 `label` 0, 1, `weight` 0.1, 1e300, `small` 1e-60, 0.5;
/// int64 `whole` 16777217, 3; text `group` a, b.
#[cfg(feature = "parquet")]
#[test]
fn parquet_columns_that_f32_cannot_represent() {
    let path = std::path::Path::new("tests/data/narrow.parquet");
    let read = |decoder: &Decoder| read_nodes(path, decoder).map(|t| t.columns);
    let with = |csv: Csv| Decoder::new().csv(csv);
    let attribute = |name: &str| Decoder::new().with_attributes([Float]).csv(Csv::new([name]));
    for (decoder, part) in [
        (
            with(Csv::default().with_weight("weight")),
            "narrow.parquet:2:3: expected a number that f32 can represent (`weight`), got \"1e300 (float64)\"; `Decoder::round_floats`",
        ),
        (
            attribute("small"),
            "narrow.parquet:1:4: expected a number that f32 can represent (`small`), got \"1e-60 (float64)\"; `Decoder::round_floats`",
        ),
        (
            attribute("whole"),
            "narrow.parquet:1:5: expected a number that f32 can represent (`whole`), got \"16777217\"; `Decoder::round_floats`",
        ),
        (
            with(Csv::default().with_label("label")),
            "narrow.parquet:1:2: expected an int64 (`label`), got \"0.0 (float64)\"; the column holds floats: cast it to int64",
        ),
        (
            with(Csv::default().with_label("group")),
            "narrow.parquet:1:6: expected an int64 (`label`), got \"a\"; `Decoder::text_labels`",
        ),
        (
            with(Csv::default().with_label("label")).text_labels(),
            "expected a text (`label`), got \"0.0 (float64)\"; the column holds floats: cast it to int64",
        ),
    ] {
        let e = read(&decoder).unwrap_err().to_string();
        assert!(e.contains(part), "expected {part} in {e}");
    }
    let weights = |c: crate::TableColumns| c.weights.unwrap();
    let rounded = read(&with(Csv::default().with_weight("weight")).round_floats()).unwrap();
    assert_eq!(weights(rounded), [0.1, f32::INFINITY]);
    let rounded = read(&attribute("whole").round_floats()).unwrap();
    assert_eq!(rounded.attributes.floats, [16_777_216.0, 3.0]);
}

/// Elements of a list follow the rule of single numbers.
#[test]
fn list_elements_that_f32_cannot_represent() {
    let files = Files::new();
    let decoder = Decoder::new().with_attributes([AttrType::vector(2)]).csv(Csv::new(["x"]));
    for (number, near) in [("1e300", f32::INFINITY), ("1e-60", 0.0), ("16777217", 16_777_216.0)] {
        let path = files.put("l.csv", format!("id,x\n1,\"[0.5, {number}]\"\n2,\"1,2\"\n"));
        let e = read_nodes(&path, &decoder).unwrap_err().to_string();
        assert!(
            e.contains("l.csv:2:2: expected a number that f32 can represent as entry 1 (`x`)")
                && e.contains("`Decoder::round_floats`"),
            "{e}"
        );
        let rounding = Decoder { rounded: Default::default(), ..decoder.clone() }.round_floats();
        let read = read_nodes(&path, &rounding).unwrap().columns.attributes.floats;
        assert_eq!((read, rounding.rounded.get()), (vec![0.5, near, 1.0, 2.0], 1), "{number}");
    }
}

/// `narrow-lists.parquet` was written by pyarrow 26: int64 `id` 1, 2; lists of float64 `large` [0.5, 1e300], [0.25, 1] and
/// `small` [0.5, 1], [1e-60, 1]; lists of int64 `whole` [1, 16777217], [2, 3]; int64 `people` 16777217, 2^53 + 1; float64
/// `x` 1e300, 0.1.
#[cfg(feature = "parquet")]
#[test]
fn parquet_list_elements_that_f32_cannot_represent() {
    let path = std::path::Path::new("tests/data/narrow-lists.parquet");
    for (name, place, entry, floats) in [
        ("large", "1:2", 1, [0.5, f32::INFINITY, 0.25, 1.0]),
        ("small", "2:3", 0, [0.5, 1.0, 0.0, 1.0]),
        ("whole", "1:4", 1, [1.0, 16_777_216.0, 2.0, 3.0]),
    ] {
        let decoder = Decoder::new().with_attributes([AttrType::vector(2)]).csv(Csv::new([name]));
        let e = read_nodes(path, &decoder).unwrap_err().to_string();
        let part = format!(
            "narrow-lists.parquet:{place}: expected a number that f32 can represent as entry {entry} (`{name}`), got \"a list of 2\"; `Decoder::round_floats`"
        );
        assert!(e.contains(&part), "expected {part} in {e}");
        let decoder = decoder.round_floats();
        assert_eq!(read_nodes(path, &decoder).unwrap().columns.attributes.floats, floats);
        assert_eq!(decoder.rounded.get(), 1, "{name}");
    }
}

/// Attributes of type `Double` keep what f32 cannot represent, from text and from Parquet files.
#[test]
fn doubles_keep_what_f32_cannot_represent() {
    let files = Files::new();
    let decoder = |names: [&str; 2]| {
        Decoder::new().with_attributes([AttrType::Double, Float]).csv(Csv::new(names))
    };
    let path = files.put("d.csv", "id,x,y\n1,1e300,0.5\n2,0.1,1\n");
    let both = decoder(["x", "y"]);
    let read = read_nodes(&path, &both).unwrap().columns.attributes;
    assert_eq!((read.doubles, read.floats), (vec![1e300, 0.1], vec![0.5, 1.0]));
    let e = read_nodes(files.put("e.csv", "id,x,y\n1,a,1\n"), &both).unwrap_err().to_string();
    assert!(e.contains("e.csv:2:2: expected a float (`x`), got \"a\""), "{e}");
    let comma = Csv::new(["x"]).with_delimiter(';').with_decimal(',');
    let comma = Decoder::new().with_attributes([AttrType::Double]).csv(comma);
    let read = read_nodes(files.put("c.csv", "id;x\n1;0,1\n"), &comma).unwrap();
    assert_eq!(read.columns.attributes.doubles, [0.1]);
    let table = Decoder::new().with_attributes([AttrType::Double]);
    let read = read_nodes(files.put("t", "id:int64\tx:string\n1\t16777217\n"), &table).unwrap();
    assert_eq!(read.columns.attributes.doubles, [16_777_217.0]);
    // In a graph they are a column of f64; `numbers` narrows it by the same rule.
    let g = Builder::new().node(&path, "n", both.clone()).build(&Device::flex()).unwrap();
    let frame = g.nodes("n").unwrap();
    let column = frame.column(DOUBLE_ATTRS).unwrap();
    assert_eq!(column.names(), Some(&["x".to_owned()][..]));
    assert_eq!(column.to_data().try_to_vec::<f64>().unwrap(), [1e300, 0.1]);
    let e = both.numbers(frame, ["x"]).unwrap_err().to_string();
    assert!(e.contains("`x`: expected a number that f32 can represent, found 1"), "{e}");
    let x = both.round_floats().numbers(frame, ["x", "y"]).unwrap().into_data();
    assert_eq!(x.try_to_vec::<f32>().unwrap(), [f32::INFINITY, 0.5, 0.1, 1.0]);
    #[cfg(feature = "parquet")]
    {
        let path = std::path::Path::new("tests/data/narrow-lists.parquet");
        let read = |names| read_nodes(path, &decoder(names)).map(|t| t.columns.attributes);
        let e = read(["people", "id"]).unwrap_err().to_string();
        assert!(
            e.contains("2:5: expected a whole number that f64 can represent (`people`)"),
            "{e}"
        );
        let read = read(["x", "id"]).unwrap();
        assert_eq!((read.doubles, read.floats), (vec![1e300, 0.1], vec![1.0, 2.0]));
    }
}
