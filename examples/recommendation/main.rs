//! Recommends what users of a shop will buy next, from tables of users, items and purchases with dates.
//!
//! ```sh
//! cargo run --release -p burn-gnn-reproduce --example recommendation              # a made-up shop
//! cargo run --release -p burn-gnn-reproduce --example recommendation -- FOLDER    # users.csv, items.csv, purchases.csv
//! ```
//!
//! The latest fifth of the purchases is the test. Embeddings learned by LightGCN (He et al., SIGIR 2020) are compared with
//! popularity and with matrix factorisation.

mod shop;

use anyhow::Result;
use burn::module::Module;
use burn::tensor::Device;
use burn_gnn::data::{Builder, Csv, Decoder, InteractionPart, TIMESTAMP, TimeUnit};
use burn_gnn::models::seeded;
use burn_gnn_links::{
    IdLists, InteractionGraph, LightGcnConfig, PairTrainingConfig, Popularity, RankingConfig,
    Ranks, fit_pairs, recommendations,
};

fn main() -> Result<()> {
    let made_up = tempfile::tempdir()?;
    let folder = match std::env::args_os().nth(1) {
        Some(folder) => folder.into(),
        None => shop::write(made_up.path())?,
    };
    let (device, table) = (Device::flex(), |name: &str| folder.join(name));
    let ids = || Decoder::new().csv(Csv::default().with_id("id"));
    let purchases = Csv::default().with_endpoints("user", "item").with_timestamp("date");
    let purchases = Decoder::new().timestamped().csv(purchases.with_time_unit(TimeUnit::Days));
    let g = Builder::new()
        .node(table("users.csv"), "user", ids())
        .node(table("items.csv"), "item", ids())
        .edge(table("purchases.csv"), ("user", "buys", "item"), purchases, true)
        .build(&device)?;
    let (buys, times) = (&g.relations()[0], g.edges("buys")?.to_ints(TIMESTAMP)?);
    let (users, items) = (buys.src().to_vec(), buys.dst().to_vec());
    let all = InteractionPart { users, items, ratings: None, times: Some(times) };
    let (train, test) = all.hold_out(0.2, 0)?; // the latest
    let (users, items) = (g.num_nodes("user")?, g.num_nodes("item")?);
    let graph = InteractionGraph::new(users, items, train.pairs())?;
    let is_new = |&(user, item): &(u32, u32)| !graph.seen(user as usize).contains(&item);
    let wanted = IdLists::from_pairs(users, test.pairs().filter(is_new))?;

    let print = |name: &str, ranks: &Ranks| {
        let m = ranks.metrics(&[10]);
        println!("{name:<14} AUC {:.3}  NDCG@10 {:.3}", m.auc, m.at(10).ndcg);
    };
    let ranking = RankingConfig::new().with_competing_targets();
    let popular = Popularity::new(&graph).scores();
    print("popularity", &ranking.rank(items, &wanted, |user| graph.seen(user), popular)?);
    let mut trained = vec![];
    for (name, layers) in [("factorisation", 0), ("LightGCN", 3)] {
        let config = LightGcnConfig::new(users, items).with_num_layers(layers);
        let model = seeded(0, || config.init(&device.clone().autodiff()));
        let training = PairTrainingConfig::new().with_temperature(Some(0.2)).with_num_epochs(30);
        let model = fit_pairs(model, &graph, &training.with_batch_size(1024), |_, _| true)?;
        let of_model = recommendations(&model.valid(), &graph, true)?;
        print(name, &of_model.rank(&wanted)?);
        trained.push(of_model);
    }
    let text = std::fs::read_to_string(table("items.csv"))?;
    let rows: Vec<&str> = text.lines().skip(1).collect();
    let best = trained[1].recommend(&[0], 10)?;
    graph.seen(0).iter().for_each(|&item| println!("user 0 bought   {}", rows[item as usize]));
    best.of(0).iter().for_each(|&(item, _)| println!("and may buy     {}", rows[item as usize]));
    Ok(())
}
