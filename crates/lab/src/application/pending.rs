//! Requests of a replay that are not issued yet: those that wait for a parent, and those that are
//! due, with their times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use blockio::Nanos;
use workload::recording::{Parent, RecordedRequest};

use super::memory::HostMemory;
use super::processors::SharedProcessors;
use super::{ReplayHost, RequestTree};

/// Requests that wait for their parents or for the end of their think times.
#[derive(Debug)]
pub struct Pending<'a> {
    requests: &'a [RecordedRequest],
    parents: &'a [Parent],
    memory: HostMemory,
    /// Children of request `index` are `children[first_child[index]..first_child[index + 1]]`.
    first_child: Vec<u32>,
    children: Vec<u32>,
    /// Requests without a parent, or with a timer, by the time at which they are due.
    due: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Requests whose parents have completed, by the mark at which their think times are over.
    thinking: BinaryHeap<Reverse<(Nanos, u32)>>,
    processors: SharedProcessors,
    /// Think time of each request that was taken; of one that thinks, the time at which it began.
    think_times: Vec<Nanos>,
    /// Number of requests answered so far.
    answered: usize,
}

impl<'a> Pending<'a> {
    /// All requests of a replay that begins at `start`.
    pub fn new(tree: &'a RequestTree<'_>, host: &ReplayHost, start: Nanos) -> Self {
        let (requests, parents) = (&*tree.requests, &*tree.parents);
        assert_eq!(requests.len(), parents.len(), "every request has its parent or none");
        let count = requests.len();
        let mut first_child = vec![0_u32; count + 1];
        for parent in parents.iter().filter_map(|it| it.index) {
            first_child[parent as usize + 1] += 1;
        }
        for index in 0..count {
            first_child[index + 1] += first_child[index];
        }
        let mut next = first_child.clone();
        let mut children = vec![0; first_child[count] as usize];
        let mut due = BinaryHeap::new();
        for (child, parent) in (0..).zip(parents) {
            match parent.index {
                Some(index) => {
                    let slot = &mut next[index as usize];
                    children[*slot as usize] = child;
                    *slot += 1;
                }
                None => due.push(Reverse((start + parent.think_time, child))),
            }
        }
        let processors = SharedProcessors::new(tree.processors, start);
        let thinking = BinaryHeap::new();
        let think_times = vec![start; count];
        let memory = HostMemory::new(host.buffered_percent, requests);
        Self {
            requests,
            parents,
            memory,
            first_child,
            children,
            due,
            thinking,
            processors,
            think_times,
            answered: 0,
        }
    }

    /// Time at which the next request is due; none while all remaining ones wait for parents.
    pub fn next_at(&self) -> Option<Nanos> {
        self.next().map(|(at, ..)| at)
    }

    /// The next request, the time at which it is due, and whether its think time ends then.
    fn next(&self) -> Option<(Nanos, u32, bool)> {
        let due = self.due.peek().map(|Reverse((at, index))| (*at, *index, false));
        let thought = self.thinking.peek();
        let thought =
            thought.map(|Reverse((mark, index))| (self.processors.reaches(*mark), *index, true));
        due.into_iter().chain(thought).min()
    }

    /// Takes the next request, with the time at which it is due; true if the host's memory answers
    /// it.
    pub fn take(&mut self) -> Option<(Nanos, u32, bool)> {
        let (at, index, has_thought) = self.next()?;
        if has_thought {
            self.thinking.pop();
            self.processors.end(at);
        } else {
            self.due.pop();
        }
        let think_time = &mut self.think_times[index as usize];
        *think_time = at.saturating_sub(*think_time);
        Some((at, index, self.memory.answers(&self.requests[index as usize])))
    }

    /// Records that a request was answered at `at`: its children become due after their think
    /// times.
    pub fn answer(&mut self, index: u32, at: Nanos) {
        let index = index as usize;
        let range = self.first_child[index] as usize..self.first_child[index + 1] as usize;
        for child in &self.children[range] {
            let Parent { think_time, is_timer, .. } = self.parents[*child as usize];
            if is_timer {
                self.due.push(Reverse((at + think_time, *child)));
            } else {
                let mark = self.processors.begin(at, think_time);
                self.thinking.push(Reverse((mark, *child)));
            }
            self.think_times[*child as usize] = at;
        }
        self.answered += 1;
        assert!(self.answered <= self.requests.len(), "a request is answered once");
    }

    /// Think times as they were in the replay: longer than the processor time where processors were
    /// busy.
    pub fn into_think_times(self) -> Vec<Nanos> {
        self.think_times
    }

    /// True once every request has been answered.
    pub fn is_over(&self) -> bool {
        self.answered == self.requests.len()
    }
}
