//! Work of the simulator for a settled 4 KiB load, counted from outside.
use blockio::{Lba, Nanos, Op, Request, Rng};
use ssd::{Drive, Setup, catalogue};
fn main() {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap();
    let lapse: u32 = args.next().unwrap().parse().unwrap();
    let reads: u64 = args.next().unwrap().parse().unwrap();
    let count: u64 = args.next().unwrap().parse().unwrap();
    let spec = catalogue::find(&name).unwrap();
    let setup = Setup { format: spec.formats()[0].clone(), host: spec.hosts()[0].clone(), time_lapse: lapse, seed: 1 };
    let mut drive = Drive::new(&spec, &setup).unwrap();
    let sectors = drive.user_sectors();
    for lba in (0..sectors).step_by(256) { drive.age(Lba(lba), (sectors - lba).min(256) as u32); }
    let mut rng = Rng::new(7);
    for _ in 0..sectors / 8 { drive.age(Lba(rng.below(sectors / 8) * 8), 8); }
    let mut sum = 0_u64;
    let request = |rng: &mut Rng, tag: u32, thread: u16| Request { tag, thread, handle: 0,
        op: if rng.below(100) < reads { Op::Read } else { Op::Write }, lba: Lba(rng.below(sectors / 8) * 8), sectors: 8 };
    for tag in 0..256_u32 { let r = request(&mut rng, tag, (tag % 16) as u16); drive.submit(Nanos::ZERO, r); }
    for _ in 0..count {
        let done = drive.next_completion(Nanos::MAX).unwrap();
        sum = sum.wrapping_mul(31).wrapping_add(done.completed_at.0);
        let r = request(&mut rng, done.tag, done.thread);
        drive.submit(done.completed_at, r);
    }
    println!("{name} {lapse} {reads} {count}: {sum:x} {:?}", drive.counters());
}
