//! scratch
#![allow(clippy::all, clippy::pedantic, clippy::print_stdout, clippy::unwrap_used)]
use blockio::*;
use ssd::*;
use std::time::Instant;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let (format, host, k, size, read, tq, secs) = (
        &a[1],
        &a[2],
        a[3].parse::<u32>().unwrap(),
        a[4].parse::<u32>().unwrap(),
        a[5].parse::<f64>().unwrap(),
        a[6].parse::<u32>().unwrap(),
        a[7].parse::<f64>().unwrap(),
    );
    let pre = a.get(8).map_or(true, |x| x != "nopre");
    let spec = std::env::var("DRIVE")
        .ok()
        .map(|p| DriveSpec::parse(&std::fs::read_to_string(&p).unwrap(), &p).unwrap())
        .unwrap_or_else(|| catalogue::find("iodrive-duo").unwrap());
    let mut d = Drive::new(
        &spec,
        &Setup { format: format.clone(), host: host.clone(), time_lapse: k, seed: 1 },
    )
    .unwrap();
    let mut rng = Rng::new(1);
    let n = d.user_sectors() / (size as u64 * 2);
    println!("user GB {:.2}", d.user_sectors() as f64 * 512e-9);
    let mut t = Nanos::ZERO;
    let phases: Vec<(f64, f64)> =
        if pre { vec![(0.0, secs), (read, secs / 10.0)] } else { vec![(read, secs)] };
    for (p, (read, secs)) in phases.into_iter().enumerate() {
        let rd = (read / 100.0 * u64::MAX as f64) as u64;
        const B: usize = 32;
        let mut ring: Vec<(Op, u64)> = Vec::new();
        let start = t;
        let iv = Nanos::from_secs_f64(secs / 20.0 / k as f64);
        let w = Instant::now();
        let mut next = |d: &Drive| {
            if ring.is_empty() {
                for _ in 0..B {
                    let op = if rng.next_u64() < rd { Op::Read } else { Op::Write };
                    ring.push((op, rng.below(n) * size as u64 * 2));
                }
                d.prefetch(ring.iter().map(|x| x.1));
            }
            ring.pop().unwrap()
        };
        for i in 0..tq * tq {
            let (op, lba) = next(&d);
            d.submit(
                t,
                Request { tag: i, thread: (i / tq) as u16, op, lba: Lba(lba), sectors: size * 2 },
            );
        }
        let mut total = 0u64;
        for s in 0..20 {
            let until = start + iv * (s + 1);
            let c0 = d.counters();
            let (mut n, mut sum, mut sq, mut max) = (0u64, 0u64, 0f64, 0u64);
            let (mut nr, mut sr) = (0u64, 0u64);
            let w0 = Instant::now();
            while let Some(c) = d.next_completion(until) {
                n += 1;
                let l = c.latency().0;
                sum += l;
                sq += l as f64 * l as f64;
                max = max.max(l);
                if c.op == Op::Read {
                    nr += 1;
                    sr += l;
                }
                let (op, lba) = next(&d);
                d.submit(
                    c.completed_at,
                    Request { tag: c.tag, thread: c.thread, op, lba: Lba(lba), sectors: size * 2 },
                );
            }
            t = until;
            total += n;
            let c1 = d.counters();
            let m = sum as f64 / n.max(1) as f64;
            println!(
                "{p} {s:2} iops {:8.0} avg {:7.3}ms sd {:7.3} max {:7.2} rd {:6.3} free {:.4} WA {:.3} rel {:.3} wall {:.2} Mio/s",
                n as f64 / iv.as_secs_f64(),
                m / 1e6,
                (sq / n.max(1) as f64 - m * m).max(0.0).sqrt() / 1e6,
                max as f64 / 1e6,
                sr as f64 / nr.max(1) as f64 / 1e6,
                d.superblocks_free_share(),
                (c1.pages_programmed() - c0.pages_programmed()) as f64 * 4096.0
                    / (c1.host_sent_bytes - c0.host_sent_bytes) as f64,
                (c1.pages_relocation - c0.pages_relocation) as f64
                    / (c1.pages_host - c0.pages_host).max(1) as f64,
                n as f64 / w0.elapsed().as_secs_f64() / 1e6
            );
        }
        println!("total {:.2} M io/s", total as f64 / w.elapsed().as_secs_f64() / 1e6);
        while let Some(_) = d.next_completion(Nanos::MAX) {}
        t = t + Nanos::from_secs(1);
    }
}
