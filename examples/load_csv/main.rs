//! Loads a graph with features, labels and splits from CSV files, saves it and loads it again.
//!
//! ```sh
//! cargo run --release --example load_csv
//! ```
//!
//! Writes two small files to a temporary folder (members and interactions of a club, after DGL's tutorial on CSV),
//! reads them as a graph, shows what one wrong cell gives, and keeps the graph in this library's own format.

use anyhow::{Result, ensure};
use burn::tensor::Device;
use burn_gnn::data::{
    AttrType, Builder, Csv, Decoder, LABEL, RandomNodeSplit, ReadOptions, Split, load_graph,
    save_graph,
};

const MEMBERS: &str = "Id,Club,Age\n0,0,44\n1,0,37\n2,1,40\n3,0,49\n4,1,25\n";
const INTERACTIONS: &str = "Src,Dst,Weight\n0,1,0.31\n1,2,0.18\n2,4,0.62\n3,0,0.40\n";

fn main() -> Result<()> {
    let (device, dir) = (Device::flex(), tempfile::tempdir()?);
    let path = |name: &str| dir.path().join(name);
    std::fs::write(path("members.csv"), MEMBERS)?;
    std::fs::write(path("interactions.csv"), INTERACTIONS)?;

    // Columns are found by name; the club is the label, the age a feature.
    let members = Decoder::new()
        .labeled()
        .with_attributes([AttrType::Float])
        .csv(Csv::new(["Age"]).with_id("Id").with_label("Club"));
    let interactions = Decoder::new()
        .weighted()
        .csv(Csv::default().with_endpoints("Src", "Dst").with_weight("Weight"));
    let read = || {
        Builder::new().node(path("members.csv"), "member", members.clone()).edge(
            path("interactions.csv"),
            ("member", "meets", "member"),
            interactions.clone(),
            false,
        )
    };
    let g = read().build(&device)?;
    print!("{g}");
    let labels = g.nodes("member")?.to_ints(LABEL)?;
    let how = RandomNodeSplit::random(1, 1, 2);
    println!("{:?}", Split::random(&labels, how, 0)?);

    // Edges are there in both directions, since the table is not directed.
    ensure!(g.num_edges("meets")? == 8);
    save_graph(&g, path("graph"))?;
    let back = load_graph(path("graph"), &device)?;
    ensure!(back.nodes("member")?.ids() == g.nodes("member")?.ids());

    // One cell spoiled, one unknown member: both are named, with file, line and column.
    std::fs::write(path("members.csv"), MEMBERS.replace("37", "old").replace("25", "?"))?;
    let e =
        read().with_options(ReadOptions::new().with_max_problems(10)).build(&device).unwrap_err();
    println!("{}", e.to_string().replace(&dir.path().display().to_string(), ""));
    Ok(())
}
