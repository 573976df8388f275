package import MartletStore

extension Catalog {
    /// Returns the table with this name, or else one that still has a former name.
    package func entity(_ name: String, _ formerNames: [String]) -> Entity? {
        self[name] ?? formerNames.lazy.compactMap { self[$0] }.first
    }
}
