//! Arguments that the order of an interrupted measurement keeps.

/// Arguments that an interrupted review keeps from its order: beside --resume they would have no
/// effect.
pub(super) const ORDERED_REVIEW: [&str; 14] = [
    "target",
    "protocol",
    "format",
    "host",
    "time_lapse",
    "full_scale",
    "seed",
    "ambient",
    "airflow",
    "slot_power",
    "fail_die",
    "compressible",
    "trace",
    "precondition",
];

/// Arguments that an interrupted sweep keeps from its order.
pub(super) const ORDERED_SWEEP: [&str; 15] = [
    "target",
    "user_capacity",
    "threads",
    "queue",
    "read_percent",
    "compressible",
    "set",
    "workload",
    "format",
    "load_gb_per_day",
    "host",
    "time_lapse",
    "full_scale",
    "seed",
    "repeat",
];
