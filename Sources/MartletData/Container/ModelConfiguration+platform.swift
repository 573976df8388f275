extension ModelConfiguration {
    /// The group of apps that shares the store on Apple's systems. Has no effect here.
    public struct GroupContainer: Sendable, Hashable {
        let identifier: String?
        private let isNone: Bool

        public static let automatic = GroupContainer(identifier: nil, isNone: false)
        public static let none = GroupContainer(identifier: nil, isNone: true)

        public static func identifier(_ groupName: String) -> GroupContainer {
            GroupContainer(identifier: groupName, isNone: false)
        }
    }

    /// The CloudKit database that the store syncs with on Apple's systems. Has no effect here.
    public struct CloudKitDatabase: Sendable, Hashable {
        let identifier: String?
        private let isNone: Bool

        public static let automatic = CloudKitDatabase(identifier: nil, isNone: false)
        public static let none = CloudKitDatabase(identifier: nil, isNone: true)

        public static func `private`(_ privateDBName: String) -> CloudKitDatabase {
            CloudKitDatabase(identifier: privateDBName, isNone: false)
        }
    }
}
