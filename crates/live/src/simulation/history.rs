//! The oracle: what each sector may hold.

use std::collections::BTreeMap;

pub(super) const BYTES: usize = 512;

/// A content of a sector: 0 is all zeroes, any other number a pattern of its own.
pub(super) type Version = u64;

/// History of what was written, sector by sector.
#[derive(Clone, Debug)]
pub(super) struct SectorHistory {
    /// The contents that a crash may leave, the present one last.
    allowed: Vec<Vec<Version>>,
    next: Version,
    /// Sectors written together since the group was begun, all or none of which survive.
    group: Option<Vec<(usize, Version)>>,
    /// By sector how many of its contents, the last ones, no command has acknowledged.
    under_way: BTreeMap<usize, usize>,
}

impl SectorHistory {
    /// All zeroes.
    pub(super) fn new(sectors: usize) -> Self {
        Self { allowed: vec![vec![0]; sectors], next: 1, group: None, under_way: BTreeMap::new() }
    }

    pub(super) fn sectors(&self) -> usize {
        self.allowed.len()
    }

    /// Has another number of sectors: new ones are zeroes, those beyond the end are gone.
    pub(super) fn resize(&mut self, sectors: usize) {
        self.allowed.resize(sectors, vec![0]);
        self.under_way.split_off(&sectors);
    }

    /// The last command for these sectors was acknowledged.
    pub(super) fn acknowledge(&mut self, first: usize, count: usize) {
        for sector in first..first + count {
            self.under_way.remove(&sector);
        }
    }

    /// The server died: of each sector what was acknowledged last is there, or what was under way.
    pub(super) fn lose_server(&mut self) {
        for (sector, allowed) in self.allowed.iter_mut().enumerate() {
            let under_way = self.under_way.get(&sector).copied().unwrap_or(0);
            allowed.drain(..allowed.len().saturating_sub(1 + under_way));
        }
    }

    /// New contents for sectors from `first` on; they are allowed from now on.
    pub(super) fn write(&mut self, first: usize, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count * BYTES];
        for (index, sector) in bytes.as_chunks_mut::<BYTES>().0.iter_mut().enumerate() {
            let version = self.next;
            self.next += 1;
            pattern(first + index, version, sector);
            self.allowed[first + index].push(version);
            *self.under_way.entry(first + index).or_default() += 1;
            if let Some(group) = &mut self.group {
                group.push((first + index, version));
            }
        }
        bytes
    }

    /// Begins a group of writes that survive all or not at all.
    pub(super) fn begin_group(&mut self) {
        self.group = Some(Vec::new());
    }

    /// The group was acknowledged, and so it is durable.
    pub(super) fn end_group(&mut self) {
        for (sector, version) in self.group.take().unwrap_or_default() {
            let allowed = &mut self.allowed[sector];
            let at = allowed.iter().position(|other| *other == version);
            allowed.drain(..at.expect("written"));
            self.under_way.remove(&sector);
        }
    }

    /// Zeroes for sectors from `first` on.
    pub(super) fn trim(&mut self, first: usize, count: usize) {
        for (sector, allowed) in (first..).zip(&mut self.allowed[first..first + count]) {
            allowed.push(0);
            *self.under_way.entry(sector).or_default() += 1;
        }
    }

    /// The last write to these sectors, or the last trim, was refused: it is not there.
    pub(super) fn take_back(&mut self, first: usize, count: usize) {
        for (sector, allowed) in (first..).zip(&mut self.allowed[first..first + count]) {
            allowed.pop();
            self.under_way.entry(sector).and_modify(|count| *count = count.saturating_sub(1));
        }
    }

    /// The group was refused: nothing of it is there.
    pub(super) fn take_group_back(&mut self) {
        for (sector, version) in self.group.take().unwrap_or_default() {
            self.allowed[sector].retain(|other| *other != version);
            self.under_way.entry(sector).and_modify(|count| *count = count.saturating_sub(1));
        }
    }

    /// The last trim was refused half-way: of each sector a read tells whether it is there.
    pub(super) fn check_refused(&mut self, first: usize, bytes: &[u8]) -> Result<(), String> {
        for (sector, content) in (first..).zip(bytes.as_chunks::<BYTES>().0) {
            let allowed = &mut self.allowed[sector];
            if allowed.last() != Some(&version(sector, content)?) {
                allowed.pop();
            }
            self.under_way.remove(&sector);
        }
        self.check_read(first, bytes)
    }

    /// Makes the present contents of these sectors durable: a crash leaves them.
    pub(super) fn settle(&mut self, first: usize, count: usize) {
        for allowed in &mut self.allowed[first..first + count] {
            allowed.drain(..allowed.len() - 1);
        }
        self.acknowledge(first, count);
    }

    /// Checks what a read returned: each sector's present content.
    pub(super) fn check_read(&self, first: usize, bytes: &[u8]) -> Result<(), String> {
        for (sector, content) in (first..).zip(bytes.as_chunks::<BYTES>().0) {
            let found = version(sector, content)?;
            let expected = *self.allowed[sector].last().expect("never empty");
            if found != expected {
                return Err(format!("sector {sector} reads version {found}, not {expected}"));
            }
        }
        Ok(())
    }

    /// Checks what was found after a crash, which from now on is what these sectors hold.
    pub(super) fn check_recovered(&mut self, first: usize, bytes: &[u8]) -> Result<(), String> {
        for (sector, content) in (first..).zip(bytes.as_chunks::<BYTES>().0) {
            let found = version(sector, content)?;
            let allowed = &mut self.allowed[sector];
            if !allowed.contains(&found) {
                return Err(format!("sector {sector} recovered as {found}, allowed {allowed:?}"));
            }
            *allowed = vec![found];
            self.under_way.remove(&sector);
        }
        self.check_group(first, bytes.len() / BYTES)
    }

    /// Checks what a damaged drive returned for sectors: one of the contents that a crash may
    /// leave, never an earlier one. `known` is what was found before, which must not change; a
    /// sector that was not looked at has none.
    pub(super) fn check_damaged(
        &self,
        first: usize,
        bytes: &[u8],
        known: &mut [Option<Version>],
    ) -> Result<(), String> {
        for (sector, content) in (first..).zip(bytes.as_chunks::<BYTES>().0) {
            let found = version(sector, content)?;
            let allowed = &self.allowed[sector];
            if !allowed.contains(&found) {
                return Err(format!("sector {sector} reads as {found}, allowed {allowed:?}"));
            }
            let before = known[sector].replace(found);
            if before.is_some_and(|before| before != found) {
                return Err(format!("sector {sector} reads as {found}, and read as {before:?}"));
            }
        }
        Ok(())
    }

    /// Checks that of a group which was under way all is there or nothing, once everything that it
    /// wrote has been looked at.
    fn check_group(&mut self, first: usize, count: usize) -> Result<(), String> {
        let seen =
            |group: &Vec<(usize, Version)>| group.iter().all(|(sector, _)| *sector < first + count);
        let Some(group) = self.group.take_if(|group| seen(group)) else { return Ok(()) };
        // Of ranges that overlap, the last one is what is there.
        let group: BTreeMap<usize, Version> = group.into_iter().collect();
        let is_there =
            |(sector, version): &(&usize, &Version)| self.allowed[**sector] == [**version];
        let there = group.iter().filter(is_there).count();
        if there == 0 || there == group.len() {
            return Ok(());
        }
        Err(format!("{there} of {} sectors of an atomic write are there", group.len()))
    }
}

/// Some contents compress well, others a little or not at all: neighbours mostly alike, so that
/// whole pages do too.
fn pattern(sector: usize, version: Version, content: &mut [u8; BYTES]) {
    let mut word = (sector as u64) << 40 ^ version;
    let varied = match (version / 24).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61 {
        0..3 => usize::MAX,
        3 => 48,
        4 => 32,
        5 => 20,
        6 => 10,
        _ => 3,
    };
    for (index, chunk) in content.as_chunks_mut::<8>().0.iter_mut().enumerate() {
        let next = match index {
            0 => version,
            1 => sector as u64,
            _ if index > varied => word,
            _ => {
                word = word.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29) ^ index as u64;
                word
            }
        };
        *chunk = next.to_le_bytes();
    }
}

/// The version that a content is of.
fn version(sector: usize, content: &[u8; BYTES]) -> Result<Version, String> {
    let word = |at: usize| u64::from_le_bytes(content.as_chunks::<8>().0[at]);
    let version = word(0);
    if version == 0 && content.iter().all(|byte| *byte == 0) {
        return Ok(0);
    }
    let mut expected = [0; BYTES];
    pattern(sector, version, &mut expected);
    if *content == expected {
        return Ok(version);
    }
    let (other, its) = (word(1), word(0));
    Err(format!("sector {sector} holds what is none of its: begins like {its} of {other}"))
}
