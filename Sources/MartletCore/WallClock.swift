import Foundation

/// The wall clock.
public enum WallClock {
    /// The current time in milliseconds since 1970.
    public static var milliseconds: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }
}
