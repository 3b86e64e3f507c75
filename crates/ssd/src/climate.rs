//! Power and temperature of a drive, and how it keeps within its limits.
//!
//! ```text
//!  counters ──► energy of a window ──► power ──► temperature ──► throttle ──► programs, erases
//!                                        └────── limit ─────────────┘
//! ```
//!
//! Once in a window the counters of the flash translation layers say what was done in it, so that
//! no request costs anything. More than the media can do in a window is a queue, and is spent in
//! the windows that follow. One lump warms and cools: with `T` of the drive, `Ta` of the air, the
//! resistance `R` between them and the capacity `C`,
//!
//! ```text
//! C dT/dt = P - (T - Ta) / R        R = R0 * sqrt(flow needed / flow)
//! ```
//!
//! Against too much of either it has one means: programs and erases take their turn, so that fewer
//! run at a time and writes slow down. Beyond its last limit it switches itself off.
//!
//! Invariants:
//! - Additions, multiplications, divisions and one square root in a fixed order: the same bits on
//!   every machine.
//! - A drive whose limits are not reached does everything when it would without this file.
//! - At 1/k of the time a window, and with it the time constant, lasts 1/k on the drive's clock.

use blockio::{ClimateReading, Nanos};
use ftl::{Counters, PAGE_BYTES};

use crate::spec::{DriveSpec, EnergySpec};

/// Length of a window, over which power is averaged, in protocol seconds.
pub const POWER_WINDOW_S: f64 = 1.0;
/// Windows without a request after which nothing changes any more: eighteen hours.
const WINDOWS_IDLE_MAX: u64 = 1 << 16;
/// Cooling below the limit at which the drive throttles less, in kelvin.
const HYSTERESIS_K: f64 = 2.0;
/// Factor by which heat throttles more, or less, in each window.
const HEAT_STEP: f64 = 1.125;
/// Largest factor by which programs and erases are slowed down.
const THROTTLE_MAX: f64 = 64.0;

/// Factor by which programs and erases take longer, at least 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Throttle(f64);

impl Throttle {
    const NONE: Self = Self(1.0);

    /// A time of the media, throttled.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturating")]
    pub(crate) fn of(self, span: Nanos) -> Nanos {
        debug_assert!((1.0..=THROTTLE_MAX).contains(&self.0), "throttling makes nothing faster");
        if self == Self::NONE { span } else { Nanos((span.0 as f64 * self.0).round() as u64) }
    }
}

/// Energy of each operation that is counted, in joules; idling in watts.
#[derive(Clone, Copy, Debug)]
struct Energy {
    idle_w: f64,
    page_read: f64,
    page_programmed: f64,
    superblock_erased: f64,
    page_transferred: f64,
}

/// The drive's limits.
#[derive(Clone, Copy, Debug)]
struct Limits {
    throttle_c: f64,
    shutdown_c: f64,
    power_w: f64,
}

/// Windows of work that the drive may take up ahead of its media, besides what its buffer holds,
/// before that counts as a queue.
const WINDOWS_AHEAD: f64 = 4.0;

/// One kind of work that was taken up, and how fast the media can do it.
#[derive(Clone, Copy, Debug)]
struct Queue {
    /// Energy that the media have still to spend, in joules.
    owed_j: f64,
    /// Most energy that they spend in a window, in joules.
    window_j: f64,
    /// Energy of what the buffer holds, in joules.
    buffer_j: f64,
    is_long: bool,
}

/// Energy of the work done in a window, in joules.
#[derive(Clone, Copy, Debug, Default)]
struct Work {
    /// Programs and erases, which can be throttled.
    throttleable: f64,
    /// All else, idling apart.
    free: f64,
}

/// Power and temperature of a drive over time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Climate {
    energy: Energy,
    limits: Limits,
    /// Devices that share the work.
    devices: f64,
    ambient_c: f64,
    resistance_k_w: f64,
    capacity_j_k: f64,
    /// On the drive's own clock.
    window: Nanos,
    /// End of the last window that was looked at.
    looked_at: Nanos,
    /// All work that was taken up by then, since the drive was made.
    done: Work,
    /// Work of it that the media have still to do.
    queues: [Queue; 2],
    /// All energy up to then.
    energy_j: f64,
    temperature_c: f64,
    heat: Throttle,
    power: Throttle,
    thermal_throttled: Nanos,
    power_throttled: Nanos,
    is_off: bool,
    /// True if the work since the last update counts as done in no time.
    is_timeless: bool,
    /// Time that passed beside the drive's own clock.
    passed_over: Nanos,
}

impl Climate {
    /// Returns the state of an idle drive, as warm as idling makes it; `None` if its thermal model
    /// is not known.
    pub(crate) fn new(spec: &DriveSpec, time_lapse: u32) -> Option<Self> {
        let (energy, thermal, power) = (&spec.energy, &spec.thermal, &spec.power);
        let (energy, thermal, power) = (energy.as_ref()?, thermal.as_ref()?, power.as_ref()?);
        let flow = thermal.airflow_lfm.unwrap_or(power.airflow_lfm).max(thermal.still_air_lfm);
        let resistance_k_w = thermal.resistance_k_w * (power.airflow_lfm / flow).sqrt();
        let joules = |micros: f64| micros / 1e6;
        let dies = f64::from(spec.geometry.dies_per_bank);
        let lapsed = Nanos::from_secs_f64(POWER_WINDOW_S) / u64::from(time_lapse);
        let window = lapsed.max(Nanos(1));
        Some(Self {
            energy: Energy {
                idle_w: energy.idle_w,
                page_read: joules(energy.read_uj),
                page_programmed: joules(energy.program_uj),
                superblock_erased: joules(energy.erase_uj) * dies,
                page_transferred: joules(energy.transfer_uj),
            },
            limits: Limits {
                throttle_c: power.throttle_c,
                shutdown_c: power.shutdown_c,
                power_w: power.limit_w.unwrap_or(f64::INFINITY),
            },
            devices: f64::from(spec.device_count()),
            ambient_c: thermal.ambient_c,
            resistance_k_w,
            capacity_j_k: thermal.capacity_j_k,
            window,
            looked_at: Nanos::ZERO,
            done: Work::default(),
            queues: Queue::of(spec, energy, window),
            energy_j: 0.0,
            temperature_c: thermal.ambient_c + energy.idle_w * resistance_k_w,
            heat: Throttle::NONE,
            power: Throttle::NONE,
            thermal_throttled: Nanos::ZERO,
            power_throttled: Nanos::ZERO,
            is_off: false,
            is_timeless: false,
            passed_over: Nanos::ZERO,
        })
    }

    /// Time of the next update.
    pub(crate) fn look_at(&self) -> Nanos {
        self.looked_at + self.window
    }

    /// True if the drive has switched itself off.
    pub(crate) const fn is_off(&self) -> bool {
        self.is_off
    }

    /// Returns the factor by which programs and erases are slowed down from now on.
    pub(crate) fn throttle(&self) -> Throttle {
        Throttle(self.heat.0.max(self.power.0))
    }

    /// Looks at all windows that are over at `at`. What was taken up since the last look was done
    /// from the first of them on; the drive idled in the others.
    pub(crate) fn look(&mut self, at: Nanos, counters: &Counters) {
        let windows = at.saturating_sub(self.looked_at).0 / self.window.0;
        if windows == 0 {
            return;
        }
        self.take_up(self.work_since(counters));
        let part = self.spend();
        self.pass(part);
        let mut idle = windows - 1;
        while idle > 0 && self.queues.iter().any(|queue| queue.owed_j > 0.0) {
            let part = self.spend();
            self.pass(part);
            idle -= 1;
        }
        for _ in 0..idle.min(WINDOWS_IDLE_MAX) {
            self.pass(Work::default());
        }
        let rest = self.window * idle.saturating_sub(WINDOWS_IDLE_MAX);
        self.energy_j += self.idle_w() * rest.as_secs_f64();
        self.done = self.energy.work(counters, self.devices);
        self.looked_at += self.window * windows;
        self.is_timeless = false;
        assert!(self.looked_at <= at, "only windows that are over are looked at");
        let throttled = self.thermal_throttled.max(self.power_throttled);
        let passed = self.looked_at + self.passed_over;
        assert!(throttled <= passed, "no drive throttles for longer than it has run");
    }

    /// Lets `span` pass beside the drive's own clock, in which the work since the last look was
    /// done evenly. Less than a window of it is kept for the next time.
    pub(crate) fn pass_over(&mut self, span: Nanos, counters: &Counters) {
        let before = self.passed_over.0 / self.window.0;
        self.passed_over += span;
        let windows = self.passed_over.0 / self.window.0 - before;
        if windows == 0 {
            return;
        }
        let (work, parts) = (self.work_since(counters), windows as f64);
        let part = Work { throttleable: work.throttleable / parts, free: work.free / parts };
        for _ in 0..windows {
            let owed = self.spend();
            self.pass(Work {
                throttleable: part.throttleable + owed.throttleable,
                free: part.free + owed.free,
            });
        }
        self.done = self.energy.work(counters, self.devices);
    }

    /// True if the drive throttles, or would before it is `margin_k` warmer, or has a limit of its
    /// power.
    pub(crate) fn is_near_limits(&self, margin_k: f64) -> bool {
        let is_throttled = self.throttle() != Throttle::NONE || self.is_off;
        let is_warm = self.temperature_c + margin_k >= self.limits.throttle_c;
        is_throttled || is_warm || self.limits.power_w.is_finite()
    }

    /// Leaves the work done so far out of power and heat: a purge, or ageing, takes no time.
    pub(crate) fn leave_out(&mut self, counters: &Counters) {
        self.queues.iter_mut().for_each(|queue| queue.owed_j = 0.0);
        self.done = self.energy.work(counters, self.devices);
        self.is_timeless = false;
    }

    /// Leaves the work up to the next update out of power and heat: most of it takes no time.
    pub(crate) const fn leave_out_next(&mut self) {
        self.is_timeless = true;
    }

    /// Power and heat at `at`, not before the last look.
    pub(crate) fn reading(&self, at: Nanos, counters: &Counters) -> ClimateReading {
        let mut now = *self;
        now.look(at, counters);
        now.take_up(now.work_since(counters));
        let work = now.spend();
        let rest_s = at.saturating_sub(now.looked_at).as_secs_f64();
        let energy_j = now.energy_j + (work.throttleable + work.free + now.idle_w() * rest_s);
        assert!(energy_j.is_finite(), "energy is finite");
        assert!(energy_j >= self.energy_j, "energy that was drawn stays drawn");
        ClimateReading {
            temperature_c: now.temperature_c,
            energy_j,
            thermal_throttled: now.thermal_throttled,
            power_throttled: now.power_throttled,
        }
    }

    fn work_since(&self, counters: &Counters) -> Work {
        if self.is_timeless {
            return Work::default();
        }
        let now = self.energy.work(counters, self.devices);
        let work = Work {
            throttleable: now.throttleable - self.done.throttleable,
            free: now.free - self.done.free,
        };
        assert!(work.throttleable >= 0.0 && work.free >= 0.0, "counters of work only grow");
        work
    }

    fn take_up(&mut self, work: Work) {
        let [throttleable, free] = &mut self.queues;
        throttleable.owed_j += work.throttleable;
        free.owed_j += work.free;
    }

    /// The work of the next window.
    fn spend(&mut self) -> Work {
        let [throttleable, free] = &mut self.queues;
        Work { throttleable: throttleable.spend(), free: free.spend() }
    }

    const fn idle_w(&self) -> f64 {
        if self.is_off { 0.0 } else { self.energy.idle_w }
    }

    /// Accounts for one window in which `work` was done.
    fn pass(&mut self, work: Work) {
        let window_s = self.window.as_secs_f64();
        let throttleable_w = work.throttleable / window_s;
        let free_w = self.idle_w() + work.free / window_s;
        let power_w = throttleable_w + free_w;
        assert!(power_w.is_finite() && power_w >= 0.0, "power is finite and not below zero");
        self.energy_j += power_w * window_s;
        let out_w = (self.temperature_c - self.ambient_c) / self.resistance_k_w;
        // What follows faster than that is in balance after it: a longer step would overshoot.
        let step_s = POWER_WINDOW_S.min(self.resistance_k_w * self.capacity_j_k);
        let change_k = step_s * (power_w - out_w) / self.capacity_j_k;
        self.temperature_c += change_k;
        assert!(self.temperature_c.is_finite(), "a temperature is finite");
        debug_assert!(self.temperature_c >= self.ambient_c, "a drive is no colder than its air");
        self.is_off |= self.temperature_c >= self.limits.shutdown_c;
        if self.heat != Throttle::NONE {
            self.thermal_throttled += self.window;
        }
        if self.power != Throttle::NONE {
            self.power_throttled += self.window;
        }
        self.heat = self.throttle_by_temperature(change_k);
        self.power = self.throttle_within(throttleable_w, free_w);
        for factor in [self.heat.0, self.power.0] {
            assert!((1.0..=THROTTLE_MAX).contains(&factor), "a factor is from 1 to the largest");
        }
    }

    /// Above the limit it throttles more until it warms no further; well below it, less.
    fn throttle_by_temperature(&self, change_k: f64) -> Throttle {
        let Limits { throttle_c, .. } = self.limits;
        let factor = self.heat.0;
        if self.temperature_c >= throttle_c && change_k >= 0.0 {
            Throttle((factor * HEAT_STEP).min(THROTTLE_MAX))
        } else if self.temperature_c < throttle_c - HYSTERESIS_K && change_k <= 0.0 {
            Throttle((factor / HEAT_STEP).max(1.0))
        } else {
            Throttle(factor)
        }
    }

    /// Half-way to what would have kept the window within the limit: programs that were booked
    /// before still come at the old pace.
    fn throttle_within(&self, throttleable_w: f64, free_w: f64) -> Throttle {
        let factor = self.power.0;
        let left_w = (self.limits.power_w - free_w).max(self.limits.power_w / THROTTLE_MAX);
        let wanted = (factor * throttleable_w / left_w).clamp(1.0, THROTTLE_MAX);
        let next = factor + (wanted - factor) / 2.0;
        // A factor below 1.01 is none: the way back would never end.
        if next < 1.01 { Throttle::NONE } else { Throttle(next) }
    }
}

impl Queue {
    /// Empty queues of a device: programs and erases, and all else.
    fn of(spec: &DriveSpec, energy: &EnergySpec, window: Nanos) -> [Self; 2] {
        let (geometry, nand) = (&spec.geometry, &spec.nand);
        let dies = f64::from(spec.modules.count * geometry.banks * geometry.dies_per_bank);
        let page_kib = PAGE_BYTES as f64 / 1024.0;
        let pages_read = f64::from(geometry.planes_per_die * geometry.page_kib) / page_kib;
        let pages_programmed = pages_read * f64::from(geometry.pages_per_program);
        let types = nand.t_program_us.len() as f64;
        let t_program_us = nand.t_program_us.iter().sum::<f64>() / types;
        // Microjoules in microseconds are watts.
        let program_w = pages_programmed * energy.program_uj / t_program_us;
        let erase_w = energy.erase_uj / nand.t_erase_us;
        let link_mb_s = spec.link.read_mb_s + spec.link.write_mb_s;
        let transfer_w = link_mb_s / PAGE_BYTES as f64 * energy.transfer_uj;
        let read_w = dies * pages_read * energy.read_uj / nand.t_read_us;
        let buffered = f64::from(spec.modules.count * spec.buffer.kib) / page_kib / 1e6;
        let queue = |power_w: f64, buffer_uj: f64| Self {
            owed_j: 0.0,
            // Where media have no such times nothing is known of a queue.
            window_j: if power_w > 0.0 && power_w.is_finite() {
                power_w * window.as_secs_f64()
            } else {
                f64::INFINITY
            },
            buffer_j: buffered * buffer_uj,
            is_long: false,
        };
        [
            queue(dies * program_w.max(erase_w), energy.program_uj),
            queue(read_w + transfer_w, energy.transfer_uj),
        ]
    }

    /// Energy of the next window: all that is owed, unless that is a queue.
    fn spend(&mut self) -> f64 {
        // What is in the buffer was taken up ahead, and as much may have been on the way to it.
        let ahead_j = WINDOWS_AHEAD * self.window_j + 2.0 * self.buffer_j;
        self.is_long = self.owed_j > if self.is_long { self.window_j } else { ahead_j };
        let part_j = if self.is_long { self.window_j } else { self.owed_j };
        self.owed_j -= part_j;
        part_j
    }
}

impl Energy {
    /// Returns the energy of everything counted so far, for each of `devices`.
    fn work(&self, counters: &Counters, devices: f64) -> Work {
        let pages = |bytes: u64| bytes as f64 / PAGE_BYTES as f64;
        let transferred = pages(counters.host_sent_bytes + counters.host_read_bytes);
        let relocated = (counters.pages_relocation + counters.pages_wear) as f64;
        let read = pages(counters.host_read_bytes) + relocated;
        let programmed = pages(counters.programmed_bytes()) * self.page_programmed;
        let erased = counters.superblocks_erased as f64 * self.superblock_erased;
        let free = read * self.page_read + transferred * self.page_transferred;
        Work { throttleable: (programmed + erased) / devices, free: free / devices }
    }
}
