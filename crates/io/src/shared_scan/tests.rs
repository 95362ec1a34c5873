//! Every reader gets every piece once, and every piece is read once for all.

use std::io::IoSlice;

use super::*;
use crate::config::IoEngine;
use crate::device::memory::MemoryDevice;

const PIECE: usize = if cfg!(miri) { 16 } else { 4096 };

fn devices(engine: IoEngine, pieces: usize) -> Arc<ScanDevices> {
    let device = MemoryDevice::new("memory");
    for i in 0..pieces {
        let bytes = vec![i as u8; PIECE];
        device.write_at(&[IoSlice::new(&bytes)], (i * PIECE) as u64).expect("memory");
    }
    let config = QueueConfig { engine, gap_bytes: Some(0), max_request_bytes: 0, ..QueueConfig::default() };
    ScanDevices::open(vec![Arc::new(device)], &config, &Clock::real()).expect("opened")
}

fn pieces(n: usize) -> Vec<Piece> {
    (0..n).map(|i| Piece { device: 0, offset: (i * PIECE) as u64, len: PIECE }).collect()
}

/// Chunks that the workers of one reader were handed, sorted.
fn scan(reader: &ScanReader, workers: usize) -> Vec<u8> {
    let all = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(piece) = reader.next() {
                    let piece = piece.expect("readable");
                    assert!(piece.iter().all(|b| *b == piece[0]));
                    assert_eq!(piece.piece.offset as usize / PIECE, piece[0] as usize);
                    all.lock().push(piece[0]);
                }
            });
        }
    });
    let mut all = all.into_inner();
    all.sort_unstable();
    all
}

#[test]
fn every_reader_is_handed_every_piece_once() {
    let n = if cfg!(miri) { 5 } else { 60 };
    for engine in [IoEngine::Inline, IoEngine::Threads] {
        for (readers, workers, ahead) in [(1, 1, 1), (1, 8, 3), (4, 3, 2), (5, 1, 100)] {
            let scan_of = devices(engine, n).table(pieces(n), ahead);
            let whole: Vec<u8> = (0..n as u8).collect();
            let readers: Vec<ScanReader> = (0..readers).map(|_| scan_of.join()).collect();
            std::thread::scope(|scope| {
                for reader in readers {
                    let whole = &whole;
                    scope.spawn(move || assert_eq!(&scan(&reader, workers), whole));
                }
            });
        }
    }
}

#[test]
fn who_joins_late_shares_the_rest_and_comes_round() {
    let devices = devices(IoEngine::Inline, 20);
    let table = devices.table(pieces(20), 2);
    let first = table.join();
    for _ in 0..10 {
        first.next().expect("there are more").expect("readable");
    }
    let second = table.join();
    let whole: Vec<u8> = (0..20).collect();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while first.next().is_some() {}
            drop(first);
        });
        scope.spawn(|| assert_eq!(scan(&second, 1), whole));
    });
    let read: u64 = devices.queues()[0].counters().classes.iter().map(|c| c.requests).sum();
    assert!((20..=31).contains(&read), "twice ten alone and ten together are 30 reads or so, not 40: {read}");
}

#[test]
fn leaving_early_and_dropping_everything_is_safe() {
    let devices = devices(IoEngine::Threads, 50);
    let table = devices.table(pieces(50), 8);
    let reader = table.join();
    reader.next().expect("there are more").expect("readable");
    drop(reader);
    drop(table);
    drop(devices);
}
