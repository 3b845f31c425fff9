// Stacks that are known by construction, in Rust: stacks SECONDS. Under burn_rec there are exactly 31 frames of rec;
// panics unwind through destructors that burn.
use std::collections::BTreeMap;
use std::hint::black_box;
use std::panic;
use std::thread;
use std::time::{Duration, Instant};

#[inline(never)]
fn burn(n: u64) -> u64 {
    let mut x = n;
    for i in 0..6000u64 {
        x = black_box(x ^ i);
    }
    x
}

#[inline(never)]
fn burn_rec(n: u64) -> u64 {
    let mut x = n;
    for i in 0..6000u64 {
        x = black_box(x + i);
    }
    x
}

#[inline(never)]
fn rec(depth: u32) -> u64 {
    let r = if depth == 0 { burn_rec(3) } else { rec(black_box(depth - 1)) };
    black_box(r) + 1
}

struct Guard(u64);

impl Drop for Guard {
    #[inline(never)]
    fn drop(&mut self) {
        black_box(burn(self.0));
    }
}

#[inline(never)]
fn panics(depth: u64) {
    let _guard = Guard(depth);
    if depth == 0 {
        panic::resume_unwind(Box::new(depth));
    }
    panics(black_box(depth - 1));
}

#[inline(never)]
fn library() -> usize {
    let mut v: Vec<String> = (0..200u32).map(|i| (i * 7919 % 211).to_string()).collect();
    v.sort_by(|a, b| {
        black_box(burn_little());
        b.cmp(a)
    });
    let m: BTreeMap<String, usize> = v.iter().map(|s| (s.clone(), s.len())).collect();
    m.values().sum()
}

#[inline(never)]
fn burn_little() -> u64 {
    let mut x = 0;
    for i in 0..20u64 {
        x = black_box(x + i);
    }
    x
}

#[inline(never)]
fn work(seconds: f64) {
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    while Instant::now() < end {
        black_box(rec(30));
        let _ = black_box(panic::catch_unwind(|| panics(4)));
        black_box(library());
    }
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).map_or(1.0, |a| a.parse().unwrap());
    let other = thread::spawn(move || work(seconds));
    work(seconds);
    other.join().unwrap();
}
