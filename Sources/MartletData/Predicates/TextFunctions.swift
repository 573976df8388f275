import GRDB

/// What SQL lacks for texts.
enum TextFunctions {
    static let contains = "martlet_contains"

    static func add(to db: Database) {
        db.add(
            function: DatabaseFunction(contains, argumentCount: 2, pure: true) { values in
                guard let text = String.fromDatabaseValue(values[0]), let part = String.fromDatabaseValue(values[1])
                else {
                    return nil
                }
                return part.isEmpty || text.localizedStandardContains(part)
            })
    }
}
