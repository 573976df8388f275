package import MartletCore

/// Gives the records of one partition their times. A pure value.
///
/// A record has the time at which the source committed it, so that the later of two writers wins, whichever of them
/// is a source. Records with one time are told apart by their offsets.
package struct SourceClock: Equatable, Sendable {
    /// The latest time that a record has had.
    package private(set) var last: HybridTime
    /// The newest position in the source's log that a record has had.
    package private(set) var position: SourcePosition?

    package init(last: HybridTime = .zero, position: SourcePosition? = nil) {
        self.last = last
        self.position = position
    }

    /// What a record's time must lie between.
    package struct Bounds: Equatable, Sendable {
        /// The time up to which tombstones were garbage-collected. Other nodes refuse what is not later.
        package var collected: HybridTime
        /// The latest time that other nodes accept, in milliseconds since 1970.
        package var limit: Int64

        package init(collected: HybridTime, limit: Int64) {
            self.collected = collected
            self.limit = limit
        }
    }

    /// The time of a record.
    package struct Time: Equatable, Sendable {
        package var stamp: HybridTime
        /// True if the stamp is later than the change, because tombstones of that time were collected: what has
        /// happened to the row since then may be forgotten.
        package var isLate: Bool

        package init(_ stamp: HybridTime, isLate: Bool = false) {
            self.stamp = stamp
            self.isLate = isLate
        }
    }

    /// Returns the time of the next record.
    ///
    /// A record that comes again, by its position, has the millisecond that it had before, and so changes nothing. One
    /// that is new is later than those before it, even if the source's clock was set back. Without positions, the order
    /// of the records counts.
    ///
    /// - Parameter milliseconds: when the source committed it, in milliseconds since 1970. Nil if that is not known:
    ///   just after the record before it.
    /// - Throws: ``IngestError`` if it would have to be later than other nodes accept: then it has to wait.
    package mutating func time(
        of milliseconds: Int64?, offset: Int64, position new: SourcePosition?, within bounds: Bounds
    ) throws(IngestError) -> Time {
        var time = last
        if let milliseconds {
            let counter = UInt64(truncatingIfNeeded: offset) & 0xffff
            time = HybridTime(rawValue: HybridTime(milliseconds: min(milliseconds, bounds.limit)).rawValue | counter)
        }
        // The source's log may have begun again: what was committed later than everything before does not come again.
        let isLater = milliseconds.map { min($0, bounds.limit) > last.milliseconds } ?? false
        if isLater || isNew(new) { time = max(time, last.next) }
        let isLate = time <= bounds.collected
        if isLate { time = max(bounds.collected, last).next }
        guard time.milliseconds <= bounds.limit else {
            throw IngestError(
                .clock, "the record before it is stamped later than the clock of this machine allows",
                hint: "Correct the clock of this machine or of the source. The record waits for its time.")
        }
        last = max(last, time)
        if let new, isLater || position.map({ $0.log != new.log || new.isAfter($0) }) ?? true { position = new }
        return Time(time, isLate: isLate)
    }

    private func isNew(_ new: SourcePosition?) -> Bool {
        guard let new, let position else { return true }
        return new.isAfter(position)
    }
}
