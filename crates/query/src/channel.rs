//! A bounded channel from the threads of a query to the thread that forked them. It waits on the
//! clock of the database: in virtual time a thread must not block on anything else.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use snowmelt_store::{Clock, EventCount};

/// State of one channel.
struct Channel<T> {
    ends: Mutex<Ends<T>>,
    changed: EventCount,
    most: usize,
}

struct Ends<T> {
    messages: VecDeque<T>,
    senders: usize,
    has_receiver: bool,
}

/// The sending end, one per thread. The channel ends when the last one is dropped.
pub struct Sender<T>(Arc<Channel<T>>);

/// The receiving end.
pub struct Receiver<T>(Arc<Channel<T>>);

/// A channel that holds at most `most` messages: its `senders` sending ends and the receiving end.
pub fn channel<T>(senders: usize, most: usize, clock: &Clock) -> (Vec<Sender<T>>, Receiver<T>) {
    assert!(senders > 0 && most > 0, "a message comes through");
    let ends = Ends { messages: VecDeque::with_capacity(most), senders, has_receiver: true };
    let channel = Arc::new(Channel { ends: Mutex::new(ends), changed: EventCount::new(clock), most });
    let senders = (0..senders).map(|_| Sender(Arc::clone(&channel))).collect();
    (senders, Receiver(channel))
}

impl<T: Send> Sender<T> {
    /// Waits for room, then sends. Returns the message once the receiver is closed.
    pub fn send(&self, message: T) -> Result<(), T> {
        let Channel { ends, changed, most } = &*self.0;
        loop {
            changed.wait_until(|| {
                let ends = ends.lock();
                ends.messages.len() < *most || !ends.has_receiver
            });
            let mut ends = ends.lock();
            if !ends.has_receiver {
                return Err(message);
            }
            // another sender may have been faster
            if ends.messages.len() < *most {
                ends.messages.push_back(message);
                assert!(ends.messages.len() <= *most, "a channel holds at most {most} messages");
                break;
            }
        }
        changed.notify_all();
        Ok(())
    }
}

impl<T: Send> Receiver<T> {
    /// The next message, once there is one; `None` when all senders are gone.
    pub fn receive(&self) -> Option<T> {
        let Channel { ends, changed, .. } = &*self.0;
        changed.wait_until(|| {
            let ends = ends.lock();
            !ends.messages.is_empty() || ends.senders == 0
        });
        let message = {
            let mut ends = ends.lock();
            let message = ends.messages.pop_front();
            assert!(message.is_some() || ends.senders == 0, "a channel ends with its last sender");
            message
        };
        if message.is_some() {
            changed.notify_all();
        }
        message
    }

    /// Refuses further messages and waits until all senders are gone.
    pub fn close(self) {
        let Channel { ends, changed, .. } = &*self.0;
        ends.lock().has_receiver = false;
        changed.notify_all();
        changed.wait_until(|| ends.lock().senders == 0);
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut ends = self.0.ends.lock();
        assert!(ends.senders > 0, "each sender leaves once");
        ends.senders -= 1;
        drop(ends);
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All of what so many threads send, in the clock's time.
    fn sum(threads: u64, each: u64, clock: &Clock) -> u64 {
        let (senders, receiver) = channel(threads as usize, 2, clock);
        let _taking_part = clock.enter();
        let tickets = clock.reserve(threads as usize);
        std::thread::scope(|scope| {
            for (sender, ticket) in senders.into_iter().zip(tickets) {
                scope.spawn(move || {
                    let _taking_part = ticket.enter();
                    (1..=each).for_each(|n| sender.send(n).unwrap());
                    drop(sender);
                });
            }
            let mut sum = 0;
            while let Some(n) = receiver.receive() {
                sum += n;
            }
            receiver.close();
            sum
        })
    }

    #[test]
    fn everything_comes_out_in_real_and_in_virtual_time() {
        for clock in [Clock::real(), Clock::virtual_time(2)] {
            assert_eq!(sum(3, 1000, &clock), 3 * 500_500);
        }
    }

    #[test]
    fn senders_without_a_receiver_get_their_messages_back() {
        let (senders, receiver) = channel(1, 1, &Clock::real());
        std::thread::scope(|scope| {
            let sender = senders.into_iter().next().unwrap();
            let refused = scope.spawn(move || (0..).find_map(|n: u64| sender.send(n).err()).unwrap());
            assert_eq!(receiver.receive(), Some(0));
            receiver.close();
            assert!(refused.join().unwrap() >= 1);
        });
    }
}
