import MartletAgent

/// The problems of a configuration; empty if it is accepted.
func problems(_ read: () throws -> Void) -> [String] {
    do {
        try read()
        return []
    } catch let error as ConfigurationError {
        return error.problems
    } catch {
        return ["\(error)"]
    }
}
