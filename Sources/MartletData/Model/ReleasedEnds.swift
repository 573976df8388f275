import Foundation

/// Releases the models to which released models refer, one after the other.
///
/// Otherwise each model is released within the release of the one that refers to it, and a long chain of models
/// overflows the stack.
enum ReleasedEnds {
    private final class Waiting {
        var ends: [[Int: ModelBacking.Related]] = []
    }

    // Safe because it is written once, before anyone reads it.
    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        pthread_key_create(&key, nil)
        return key
    }()

    /// Takes the relationships of a model that is being released.
    static func release(_ ends: inout [Int: ModelBacking.Related]) {
        if let pointer = pthread_getspecific(key) {
            Unmanaged<Waiting>.fromOpaque(pointer).takeUnretainedValue().ends.append(ends)
            ends = [:]
            return
        }
        let waiting = Waiting()
        pthread_setspecific(key, Unmanaged.passUnretained(waiting).toOpaque())
        defer { pthread_setspecific(key, nil) }
        waiting.ends.append(ends)
        ends = [:]
        while !waiting.ends.isEmpty {
            let next = waiting.ends.removeLast()
            // The models that this releases add those to which they refer.
            withExtendedLifetime(next) {}
        }
    }
}
