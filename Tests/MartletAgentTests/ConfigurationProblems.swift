import MartletAgent

/// What is wrong with a configuration; nothing where it is taken.
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
