//! Every kernel against the suite that every IP engine passes, on the host build of the kernels or on a GPU;
//! and, as that suite would take hours under a tool that watches each access, the short of it: [`edges`].

use wirespeed_fib::conformance::tables::scattered_routes;
use wirespeed_fib::conformance::{Expected, scattered};
use wirespeed_fib::oracle::boundaries;
use wirespeed_fib::{Address, BuildOptions, Engine, LiveTable, Lookup, NextHop, Prefix, Rib, Update};
use wirespeed_image::device::OnDevice;

use super::mirror::Mirrored;

/// Prefixes of all lengths, next hops of each width, and patches: each program of a table with each width of
/// keys, in grids and batches of several sizes.
fn edges<A: Address, E: Engine<A>>()
where
    E::Table: OnDevice + Lookup<A>,
{
    // Programs, widths and grids change from batch to batch.
    const BATCHES: usize = 12;
    let mut routes = scattered_routes::<A>(300);
    routes.extend([Prefix::DEFAULT, Prefix::host(A::MIN), Prefix::host(A::MAX)]);
    let mut probes = boundaries(routes.iter().copied().step_by(3));
    probes.extend(scattered::<A>(100));
    for largest in [200, 60_000, 1 << 24] {
        let next_hops = (1..).map(|at| NextHop(largest - at % 150));
        let rib: Rib<A> = routes.iter().copied().zip(next_hops).collect();
        let mut live = LiveTable::<A, Mirrored<E>>::new(rib, BuildOptions::default()).expect("it is built");
        let reader = live.reader();
        for turn in 0..3u32 {
            let expected = Expected::of(live.model());
            for batch in 0..BATCHES {
                // A short batch is the device's where it is a state's first.
                let short = [1, 33, 0][turn as usize];
                let probes = &probes[..if batch == 0 { short } else { probes.len() - batch / 4 }];
                let mut found = vec![NextHop(u32::MAX); probes.len()];
                reader.enter().lookup_batch(probes, &mut found);
                for (&address, &found) in probes.iter().zip(&found) {
                    assert_eq!(found, expected.lookup(address), "{address} in a table up to {largest}");
                }
            }
            let updates: Vec<_> = routes
                .iter()
                .skip(turn as usize)
                .step_by(7)
                .map(|&prefix| match turn {
                    0 => Update::Withdraw { prefix },
                    _ => Update::Announce { prefix, next_hop: Some(NextHop(turn)) },
                })
                .collect();
            live.apply(&updates).expect("the table takes the updates");
        }
    }
}

on_device! {
    dir24, wirespeed_fib::V4, wirespeed_dir24::Dir24;
    sail_l_v4, wirespeed_fib::V4, wirespeed_sail::SailL;
    sail_l_v6, wirespeed_fib::V6, wirespeed_sail::SailL;
    sail_m_v4, wirespeed_fib::V4, wirespeed_sail::SailM;
    sail_m_v6, wirespeed_fib::V6, wirespeed_sail::SailM;
    gamt_v4, wirespeed_fib::V4, wirespeed_gamt::GamtT<wirespeed_fib::V4>;
    gamt_v6, wirespeed_fib::V6, wirespeed_gamt::GamtT<wirespeed_fib::V6>;
    gamt_s_v4, wirespeed_fib::V4, wirespeed_gamt::GamtS<wirespeed_fib::V4>;
    gamt_s_v6, wirespeed_fib::V6, wirespeed_gamt::GamtS<wirespeed_fib::V6>;
    fold_v4, wirespeed_fib::V4, wirespeed_fold::FoldV4;
    fold_v6, wirespeed_fib::V6, wirespeed_fold::FoldV6;
    fold_hot, wirespeed_fib::V4, wirespeed_fold::FoldHot;
    forest_v4, wirespeed_fib::V4, wirespeed_forest::ForestOf<wirespeed_fib::V4>;
    forest_v6, wirespeed_fib::V6, wirespeed_forest::ForestOf<wirespeed_fib::V6>;
    rank, wirespeed_fib::V4, wirespeed_rank::Rank;
    sail_b, wirespeed_fib::V4, wirespeed_sail::SailB;
    sail_u, wirespeed_fib::V4, wirespeed_sail::SailU;
    waldvogel_v4, wirespeed_fib::V4, wirespeed_waldvogel::Waldvogel<wirespeed_fib::V4>;
    waldvogel_v6, wirespeed_fib::V6, wirespeed_waldvogel::Waldvogel<wirespeed_fib::V6>;
}
