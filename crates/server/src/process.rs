//! What the operating system knows of this process, by the names that Prometheus clients use everywhere.

use std::sync::atomic::AtomicU64;

use procfs::process::LimitValue;
use procfs::{ProcResult, page_size, ticks_per_second};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// The metrics of the process. Where there is no `/proc` they are not registered.
#[derive(Debug, Default)]
pub(crate) struct Process {
    open: Gauge,
    most: Gauge,
    resident: Gauge,
    started: Gauge,
    cpu: Counter<f64, AtomicU64>,
}

impl Process {
    pub(crate) fn register(&self, registry: &mut Registry) {
        if self.read().is_err() {
            return;
        }
        registry.register(
            "process_open_fds",
            "Open file descriptors",
            self.open.clone(),
        );
        registry.register(
            "process_max_fds",
            "Most file descriptors that may be open",
            self.most.clone(),
        );
        registry.register(
            "process_resident_memory_bytes",
            "Resident memory in bytes",
            self.resident.clone(),
        );
        registry.register(
            "process_start_time_seconds",
            "When the process started, in seconds since 1970",
            self.started.clone(),
        );
        registry.register(
            "process_cpu_seconds",
            "Processor time, of user and system together, in seconds",
            self.cpu.clone(),
        );
    }

    /// Looks now. What cannot be read keeps its value.
    pub(crate) fn look(&self) {
        if let Err(error) = self.read() {
            tracing::debug!(%error, "the process cannot be looked at");
        }
    }

    fn read(&self) -> ProcResult<()> {
        let process = procfs::process::Process::myself()?;
        self.open.set(gauge(process.fd_count()? as u64));
        if let LimitValue::Value(most) = process.limits()?.max_open_files.soft_limit {
            self.most.set(gauge(most));
        }
        let stat = process.stat()?;
        let ticks = ticks_per_second();
        self.resident
            .set(gauge(stat.rss.saturating_mul(page_size())));
        let booted = procfs::boot_time_secs()?;
        self.started.set(gauge(booted + stat.starttime / ticks));
        let cpu = (stat.utime + stat.stime) as f64 / ticks as f64;
        self.cpu.inc_by((cpu - self.cpu.get()).max(0.0));
        Ok(())
    }
}

fn gauge(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_looked_at() {
        let process = Process::default();
        process.look();
        assert!(process.open.get() > 2);
        assert!(process.most.get() >= process.open.get());
        assert!(process.resident.get() > 1 << 20);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let now = gauge(now.expect("behind 1970").as_secs());
        let age = now - process.started.get();
        assert!((-5..86_400).contains(&age), "{age}");
    }
}
