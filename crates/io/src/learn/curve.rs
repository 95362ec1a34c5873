//! Device time of a request by its length, and the two costs that explain it.
//!
//! Points of mean length and device time come in, one for each power of two, the latest counting.
//! Two laws are known, of which one fits:
//!
//! * caps: a request costs the longer of its share of the requests and of the bytes per second that
//!   the device allows (volumes; flash has both limits, too);
//! * an arm: a request costs a seek and its transfer.
//!
//! Under both a mixture of lengths costs what its mean length does, so mixtures are points as
//! well.

/// Points: mean lengths up to 4 KiB, and twice as much each.
const POINTS: usize = 11;
const FIRST_BITS: u32 = 12;

/// Weight of an assumed point.
const PRIOR_WEIGHT: f64 = 1e-4;
/// Least weight of a measured point.
const OLD_WEIGHT: f64 = 1e-3;
/// The part of a point's weight that is left when another one is measured; a fresh point loses
/// more.
const FADES: f64 = 0.95;
const FADES_LATER: f64 = 0.999;
const LATER_WEIGHT: f64 = 0.05;
/// Factor of the error of a point below the caps. A device can take longer than its caps say, where
/// both bind by turns, but not less.
const LESS: f64 = 8.0;

/// The last measurement of a length counts more than those before it.
const LAST: f64 = 0.25;

/// Shorter requests say little about the cost of bytes: explaining them by it must save at least
/// this much error, of their weight. Without longer ones the assumed cost of bytes stays until some
/// are tried.
const LONG_BYTES: f64 = (45 << 10) as f64;
const UNTRIED: f64 = 0.02;

/// Lengths for which something is assumed: where requests and where bytes are the limit.
const PRIOR_BYTES: [f64; 2] = [8192.0, (1 << 20) as f64];

/// How the costs of requests and bytes make a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CurveKind {
    /// The longer counts.
    Caps,
    /// Both count.
    Arm,
}

/// Two costs, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Costs {
    pub(crate) kind: CurveKind,
    pub(crate) request_ns: f64,
    pub(crate) byte_ns: f64,
}

impl Costs {
    /// Device time of a request of `bytes`.
    pub(crate) fn ns(&self, bytes: f64) -> f64 {
        match self.kind {
            CurveKind::Caps => self.request_ns.max(self.byte_ns * bytes),
            CurveKind::Arm => self.request_ns + self.byte_ns * bytes,
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Point {
    bytes: f64,
    ns: f64,
    weight: f64,
}

#[derive(Clone)]
pub(crate) struct Curve {
    prior: Costs,
    points: [Point; POINTS],
}

impl Curve {
    pub(crate) fn new(prior: Costs) -> Curve {
        Curve { prior, points: [Point::default(); POINTS] }
    }

    /// True when some length was measured.
    pub(crate) fn is_measured(&self) -> bool {
        self.points.iter().any(|point| point.weight > 0.0)
    }

    /// How sure the costs of requests and of bytes are, each 0 to 1: as the surest of the lengths
    /// that they explain.
    pub(crate) fn confidence(&self, costs: &Costs) -> [f64; 2] {
        let mut sure = [0.0f64; 2];
        for point in self.points.iter().filter(|point| point.weight > 0.0) {
            let of = usize::from(costs.byte_ns * point.bytes > costs.request_ns);
            sure[of] = sure[of].max(point.weight.min(1.0));
        }
        sure
    }

    /// Assumes these costs from now on.
    pub(crate) fn assume(&mut self, prior: Costs) {
        self.prior = prior;
    }

    /// Requests of that mean length take `ns` of the device; `weight`, up to 1, says how sure that
    /// is.
    pub(crate) fn set(&mut self, bytes: f64, ns: f64, weight: f64) {
        if bytes <= 0.0 || ns <= 0.0 {
            // A clock stood still: the logarithm of nothing would be in all costs later.
            return;
        }
        let bits = (bytes.max(1.0).log2().round() as u32).clamp(FIRST_BITS, FIRST_BITS + POINTS as u32 - 1);
        for point in self.points.iter_mut().filter(|point| point.weight > 0.0) {
            let fades = if point.weight > LATER_WEIGHT { FADES } else { FADES_LATER };
            point.weight = (fades * point.weight).max(OLD_WEIGHT);
        }
        let point = &mut self.points[(bits - FIRST_BITS) as usize];
        let part = (weight / (LAST * point.weight + weight)).clamp(0.0, 1.0);
        let between = |old: f64, new: f64| if old > 0.0 { old * (new / old).powf(part) } else { new };
        *point = Point {
            bytes: between(point.bytes, bytes),
            ns: between(point.ns, ns),
            weight: point.weight.max(weight),
        };
    }

    /// The costs that explain the points best, and the elasticity of requests of `bytes`, if that
    /// is known.
    pub(crate) fn costs(&self, kind: CurveKind, bytes: f64, elasticity: Option<f64>) -> Costs {
        let measured = self.points.iter().copied().filter(|point| point.weight > 0.0);
        // Costs measured bound those assumed: a request, and each of its bytes, costs at
        // most what the whole took.
        let bound = |bytes: f64| {
            let most = |p: &Point| p.ns * (bytes / p.bytes).max(1.0);
            measured.clone().map(|p| most(&p)).fold(f64::INFINITY, f64::min)
        };
        let assumed = PRIOR_BYTES.map(|bytes| {
            let ns = self.prior.ns(bytes).min(bound(bytes));
            Point { bytes, ns, weight: PRIOR_WEIGHT }
        });
        let mut points: Vec<Point> = measured.clone().chain(assumed).collect();
        points.sort_by(|a, b| a.bytes.total_cmp(&b.bytes));
        match kind {
            CurveKind::Caps => caps(&points, bytes, elasticity),
            CurveKind::Arm => arm(&points),
        }
    }
}

/// The split of the points into those that requests limit and those that bytes do, with the least
/// error of the logarithms.
fn caps(points: &[Point], bytes: f64, elasticity: Option<f64>) -> Costs {
    let mean = |points: &[Point], of: &dyn Fn(&Point) -> f64| {
        let weight: f64 = points.iter().map(|p| p.weight).sum();
        (points.iter().map(|p| p.weight * of(p).ln()).sum::<f64>() / weight).exp()
    };
    let untried = |long: &[Point]| {
        let is_short = |p: &&Point| p.bytes < LONG_BYTES && p.weight > PRIOR_WEIGHT;
        let is_long = |p: &&Point| p.bytes >= LONG_BYTES && p.weight > LATER_WEIGHT / 2.0;
        let weight: f64 = long.iter().filter(is_short).map(|p| p.weight).sum();
        if long.iter().any(|p| is_long(&p)) { 0.0 } else { UNTRIED * weight }
    };
    let error = |costs: &Costs| -> f64 {
        let of = |p: &Point| {
            let log = (p.ns / costs.ns(p.bytes)).ln();
            p.weight * log * log * if log < 0.0 { LESS } else { 1.0 }
        };
        points.iter().map(of).sum()
    };
    let contradicts = |costs: &Costs| {
        let says_bytes = costs.byte_ns * bytes > costs.request_ns;
        let against = elasticity.map_or(0.0, |e| if says_bytes { 1.0 - e } else { e });
        (against - 0.5).max(0.0)
    };
    let (least, most) = (points[0].bytes, points[points.len() - 1].bytes);
    let split = |at: usize| {
        let (short, long) = points.split_at(at);
        let request_ns = mean(short, &|p| p.ns);
        let byte_ns = mean(long, &|p| p.ns / p.bytes);
        // A cost that limits nothing is just not the limit.
        match (short, long) {
            ([], _) => Costs { kind: CurveKind::Caps, request_ns: byte_ns * least, byte_ns },
            (_, []) => Costs { kind: CurveKind::Caps, request_ns, byte_ns: request_ns / most },
            _ => Costs { kind: CurveKind::Caps, request_ns, byte_ns },
        }
    };
    let all = (0..=points.len()).map(|at| {
        let costs = split(at);
        (error(&costs) + untried(&points[at..]) + contradicts(&costs), costs)
    });
    all.min_by(|a, b| a.0.total_cmp(&b.0)).expect("two points are assumed").1
}

/// Least squares of the relative errors, by iteration (Gauss and Newton): relative to what is
/// believed, so that a point that is far off counts little.
fn arm(points: &[Point]) -> Costs {
    const STEPS: usize = 8;
    let mut costs = Costs { kind: CurveKind::Arm, ..caps(points, 0.0, None) };
    for _ in 0..STEPS {
        let (mut xx, mut xy, mut yy, mut xz, mut yz) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for p in points {
            let believed = costs.ns(p.bytes);
            let (x, y, z) = (1.0 / believed, p.bytes / believed, p.ns / believed);
            xx += p.weight * x * x;
            xy += p.weight * x * y;
            yy += p.weight * y * y;
            xz += p.weight * x * z;
            yz += p.weight * y * z;
        }
        let det = (xx * yy - xy * xy).max(f64::MIN_POSITIVE);
        // Neither is nothing.
        costs.request_ns = ((xz * yy - yz * xy) / det).max(0.01 * xz / xx);
        costs.byte_ns = ((yz * xx - xz * xy) / det).max(0.01 * yz / yy);
    }
    costs
}
