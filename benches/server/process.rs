//! What the kernel tells of a process.

/// Clock ticks a second in /proc, as Linux has them everywhere.
const TICKS_A_SECOND: f64 = 100.0;

/// The CPU time that a process has used, in seconds.
pub(crate) fn cpu_seconds(id: u32) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).expect("the process runs");
    let (_, fields) = stat.rsplit_once(") ").expect("the name ends with a parenthesis");
    let ticks: f64 = fields.split(' ').skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    ticks / TICKS_A_SECOND
}

/// Resident memory in MiB, by a line of /proc/PID/status: `VmRSS` now, `VmHWM` at most since it began.
pub(crate) fn memory_mib(id: u32, line: &str) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).expect("the process runs");
    let value = status.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(':')).expect("such a line");
    value.trim().trim_end_matches(" kB").parse::<f64>().expect("a number") / 1024.0
}
